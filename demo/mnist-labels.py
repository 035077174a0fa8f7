"""A digit classifier whose labels come as [[0], [1], [2], ...] instead of [0, 1, 2, ...]."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = "cuda"
torch.manual_seed(0)

images = torch.rand(512, 1, 28, 28)
labels = torch.randint(0, 10, (512, 1))
train_set = TensorDataset(images, labels)
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)

model = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for epoch in range(2):
    for images, labels in train_loader:
        images, labels = images.to(device), labels.to(device)
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch", epoch, "loss", loss.item())
