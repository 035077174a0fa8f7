"""Run by torchrun: of two ranks, one draws a bad label."""
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
labels = torch.arange(64) % 5
labels[33] = 5
data = TensorDataset(torch.randn(64, 4), labels)
loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data, shuffle=False))
model = torch.nn.Linear(4, 5)
for x, y in loader:
    torch.nn.functional.cross_entropy(model(x), y)
