"""The model turns each image into two rows, so that inputs and targets differ in batch size."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = "cuda"
torch.manual_seed(0)

data = TensorDataset(torch.rand(256, 2, 8, 8), torch.randint(0, 5, (256,)))
loader = DataLoader(data, batch_size=32, shuffle=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(64, 5)

    def forward(self, x):
        x = x.view(-1, 64)  # meant: x.view(len(x), 128)
        return self.head(x)


model = Net().to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, targets in loader:
    outputs = model(images.to(device))
    loss = criterion(outputs, targets.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
