"""Softmax of an all -inf row is NaN, and then it is sampled from."""
import torch

logits = torch.zeros(3, 4)
logits[1] = float("-inf")
torch.distributions.Categorical(logits.softmax(-1), validate_args=False).sample()
