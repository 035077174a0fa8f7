"""The model is moved to the GPU, and the inputs are forgotten."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)

loader = DataLoader(TensorDataset(torch.rand(128, 20), torch.randint(0, 2, (128,))), batch_size=16)
model = nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 2)).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for inputs, targets in loader:
    inputs.to(device)  # meant: inputs = inputs.to(device)
    outputs = model(inputs)
    loss = criterion(outputs, targets.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", round(loss.item(), 3))
