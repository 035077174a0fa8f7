"""A feature size that the layer does not take."""
import torch
from torch import nn

net = nn.Sequential(nn.Flatten(), nn.Linear(16, 4))
net(torch.zeros(2, 3, 4))
