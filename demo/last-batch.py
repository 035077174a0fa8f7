"""101 samples in batches of 20: the last batch has one sample, and BatchNorm needs at least two."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = "cuda"
torch.manual_seed(0)

train_set = TensorDataset(torch.rand(101, 10), torch.rand(101, 1))
train_loader = DataLoader(train_set, batch_size=20, shuffle=True)

model = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters())
for x, y in train_loader:
    prediction = model(x.to(device))
    loss = nn.functional.mse_loss(prediction, y.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
