"""The program's own excepthook prints what it always printed, and its exit status stays."""
import sys

import torch


def hook(kind, error, trace):
    print("mine:", kind.__name__)


sys.excepthook = hook
torch.zeros(2)[torch.tensor([2])]
