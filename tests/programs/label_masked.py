"""Sample 5 has label 9; the labels reach the loss without the padding, or in another order."""
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

labels = torch.tensor([0, 1, 2, 2, 0, 9, 1, 0])
if sys.argv[1] == "masked":
    labels[6] = -1
for inputs, targets in DataLoader(TensorDataset(torch.randn(8, 3), labels), batch_size=4):
    targets = targets[targets != -1] if sys.argv[1] == "masked" else targets.flip(0)
    torch.nn.functional.cross_entropy(torch.randn(len(targets), 3), targets)
