"""Trainings of many kinds. The numbers must be the same with DEVICE=cpu and, redirected, with DEVICE=cuda."""
import copy
import io
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils.checkpoint
from torch.utils.data import DataLoader, TensorDataset

dev = torch.device(os.environ.get("DEVICE", "cuda"))


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.a = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)
        self.b = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return F.relu(x + self.b(F.relu(self.norm(self.a(x)))))


def step(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def images():
    net = nn.Sequential(nn.Conv2d(3, 8, 3), Block(8), nn.MaxPool2d(2), Block(8), nn.AdaptiveAvgPool2d(1),
                        nn.Flatten(), nn.Linear(8, 5)).to(dev)
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    data = TensorDataset(torch.randn(24, 3, 12, 12), torch.randint(0, 5, (24,)))
    for workers in (0, 2):
        for x, y in DataLoader(data, 8, shuffle=True, num_workers=workers, pin_memory=dev.type == "cuda"):
            x, y = x.to(dev, non_blocking=True), y.to(dev, non_blocking=True)
            yield step(optimizer, F.cross_entropy(net(x), y))
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        schedule.step()
    net.eval()
    with torch.no_grad():
        confusion = torch.zeros(5, 5, device=dev)
        confusion.index_put_((y, net(x).argmax(1)), torch.ones(len(y), device=dev), accumulate=True)
    yield confusion.trace().cpu().numpy().item()
    file = io.BytesIO()
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    state = torch.load(file, map_location=dev)
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    yield step(optimizer, F.cross_entropy(net(x), y))
    yield copy.deepcopy(net)(x).sum().item()


def text():
    embedding = nn.Embedding(50, 16).to(dev)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2).to(dev)
    head = nn.Linear(16, 50).to(dev)
    parameters = [one for part in (embedding, encoder, head) for one in part.parameters()]
    optimizer = torch.optim.AdamW(parameters, 1e-3)
    for _ in range(3):
        ids = torch.randint(0, 50, (4, 9)).to(dev)
        mask = torch.triu(torch.full((9, 9), float("-inf"), device=dev), 1)
        out = head(encoder(embedding(ids) + torch.arange(9, device=dev).view(1, 9, 1), mask=mask))
        yield step(optimizer, F.cross_entropy(out[:, :-1].reshape(-1, 50), ids[:, 1:].reshape(-1)))
    encoder.eval()
    with torch.no_grad():
        yield encoder(embedding(ids), src_key_padding_mask=ids == 0).sum().item()


def sequences():
    net = nn.LSTM(4, 8, 2, batch_first=True, bidirectional=True).to(dev)
    head = nn.Linear(16, 1).to(dev)
    optimizer = torch.optim.Adam(list(net.parameters()) + list(head.parameters()))
    for _ in range(3):
        x, lengths = torch.randn(3, 6, 4, device=dev), torch.tensor([6, 4, 2])
        hidden = (torch.zeros(4, 3, 8, device=dev), torch.zeros(4, 3, 8).to(x))
        out, _ = net(nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True), hidden)
        out, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
        yield step(optimizer, head(out.sum(1)).pow(2).mean())


def adversaries():
    maker = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8)).to(dev)
    judge = nn.Sequential(nn.utils.spectral_norm(nn.Linear(8, 16)), nn.LeakyReLU(), nn.Linear(16, 1)).to(dev)
    of_maker, of_judge = torch.optim.RMSprop(maker.parameters()), torch.optim.Adagrad(judge.parameters())
    loss = nn.BCEWithLogitsLoss()
    for _ in range(3):
        true, false = torch.randn(6, 8).to(dev), maker(torch.randn(6, 4, device=dev))
        mix = torch.rand(6, 1, device=dev)
        between = (mix * true + (1 - mix) * false.detach()).requires_grad_()
        slope = torch.autograd.grad(judge(between).sum(), between, create_graph=True)[0].norm(2, 1)
        yield step(of_judge, loss(judge(true), torch.ones(6, 1, device=dev)) + (slope - 1).pow(2).mean()
                   + loss(judge(false.detach()), torch.zeros(6, 1, device=dev)))
        yield step(of_maker, loss(judge(false), torch.ones(6, 1).to(dev)))


def mixed_precision():
    net = nn.Linear(4, 3).to(dev)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=dev.type == "cuda")
    for _ in range(3):
        with torch.cuda.amp.autocast(enabled=dev.type == "cuda"):
            loss = F.mse_loss(net(torch.randn(5, 4, device=dev)), torch.ones(5, 3, device=dev))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        yield loss.item()


def other():
    net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.Linear(4, 4)).to(dev)
    x = torch.randn(3, 4, device=dev, requires_grad=True)
    options = {} if torch.__version__ < "2" else {"use_reentrant": True}
    y = torch.utils.checkpoint.checkpoint(net, x, **options).sum()
    y.backward()
    yield y.item()
    yield x.grad.sum().item()
    yield nn.DataParallel(net)(x).sum().item()
    ones = torch.ones(1, 2, device=dev)
    yield torch.jit.trace(nn.Linear(2, 2).to(dev), ones)(ones).sum().item()
    yield nn.MultiheadAttention(4, 2).to(dev)(x, x, x)[0].sum().item()
    yield F.ctc_loss(torch.randn(5, 1, 4, device=dev).log_softmax(-1), torch.tensor([[1, 2]], device=dev),
                     torch.tensor([5]), torch.tensor([2])).item()
    bag = nn.EmbeddingBag(10, 3, sparse=True).to(dev)
    yield step(torch.optim.SparseAdam(bag.parameters()),
               bag(torch.tensor([1, 2, 4], device=dev), torch.tensor([0, 2], device=dev)).sum())
    yield bag.weight.sum().item()
    yield torch.fft.rfft(x).abs().sum().item()
    yield torch.randperm(10, device=dev)[0].item()


if __name__ == "__main__":
    for training in (images, text, sequences, adversaries, mixed_precision, other):
        torch.manual_seed(1)
        print(training.__name__, *training(), flush=True)
