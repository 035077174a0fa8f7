"""One-hot rows of whole numbers where the loss wants class numbers."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = "cuda"
torch.manual_seed(0)

flowers = torch.rand(150, 4)
species = F.one_hot(torch.randint(0, 3, (150,)), num_classes=3)
loader = DataLoader(TensorDataset(flowers, species), batch_size=16, shuffle=True)

model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3)).to(device)
optimizer = torch.optim.Adam(model.parameters())

for x, y in loader:
    logits = model(x.to(device))
    loss = F.cross_entropy(logits, y.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
