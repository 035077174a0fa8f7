"""A class index that the model has no output for, in one sample of a shuffled loader."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
labels = torch.arange(40) % 5
labels[23] = 7
train_set = TensorDataset(torch.randn(40, 8), labels)
train_loader = DataLoader(train_set, batch_size=8, shuffle=True)
model = nn.Linear(8, 5)
criterion = nn.CrossEntropyLoss()
for epoch in range(2):
    for inputs, targets in train_loader:
        loss = criterion(model(inputs), targets)
