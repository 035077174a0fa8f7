"""A padding token was added to the vocabulary, and the embedding was not enlarged."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = "cuda"
torch.manual_seed(0)

SENTENCES = ["the cat sat on the mat", "a dog ran", "the dog sat", "a cat ran on a mat"] * 10
WORDS = sorted({word for sentence in SENTENCES for word in sentence.split()})
VOCAB = {word: number for number, word in enumerate(WORDS)}
PAD = len(VOCAB)


class Sentences(Dataset):
    def __len__(self):
        return len(SENTENCES)

    def __getitem__(self, index):
        ids = [VOCAB[word] for word in SENTENCES[index].split()]
        return torch.tensor(ids + [PAD] * (6 - len(ids)))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(len(VOCAB), 16)
        self.rnn = nn.GRU(16, 16, batch_first=True)

    def forward(self, ids):
        return self.rnn(self.embed_tokens(ids))[0]


model = Encoder().to(device)
optimizer = torch.optim.Adam(model.parameters())
for token_ids in DataLoader(Sentences(), batch_size=8, shuffle=True):
    loss = model(token_ids.to(device)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
