"""A filter keeps only confident samples; one batch has none, and the mean of nothing is not a number."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = "cuda"
torch.manual_seed(0)

confidence = torch.ones(64)
confidence[32:48] = 0.1
train_set = TensorDataset(torch.rand(64, 6), torch.randint(0, 3, (64,)), confidence)
train_loader = DataLoader(train_set, batch_size=16)
model = nn.Linear(6, 3).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for x, y, sure in train_loader:
    x, y, sure = x.to(device), y.to(device), sure.to(device)
    keep = sure > 0.5
    loss = nn.functional.cross_entropy(model(x[keep]), y[keep])
    assert not torch.isnan(loss), "the loss is not a number"
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
