"""Targets of shape [N, 1] where [N] is wanted."""
import torch

scores, targets = torch.randn(4, 3), torch.zeros(4, 1, dtype=torch.long)
torch.nn.functional.cross_entropy(
    scores,
    targets,
)
