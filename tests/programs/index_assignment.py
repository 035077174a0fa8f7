"""x[i, :, j] = v with j out of range."""
import torch

grid = torch.zeros(4, 3, 5)
rows, cols = torch.tensor([0, 3]), torch.tensor([1, -6])
grid[rows, :, cols] = 1.0
