"""Ten classes, numbered from 1 to 10 by whoever made the labels: there is no class 10."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = "cuda"
torch.manual_seed(0)


class Digits(Dataset):
    def __init__(self, size=2000):
        generator = torch.Generator().manual_seed(1)
        self.images = torch.rand(size, 64, generator=generator)
        self.labels = torch.randint(0, 10, (size,), generator=generator)
        self.labels[1985] = 10
        self.labels[310] = 10

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


def train(model, train_loader):
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for images, labels in train_loader:
        images, labels = images.to(device), labels.to(device)
        out = model(images)
        loss = criterion(out, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train_set = Digits()
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)).to(device)
train(model, train_loader)
print("done")
