"""CTC labels beyond the alphabet raise nothing on the CPU; padding beyond the lengths is no label."""
import torch

scores = torch.randn(6, 2, 5).log_softmax(-1)
lengths = torch.tensor([6, 6]), torch.tensor([2, 1])
torch.nn.functional.ctc_loss(scores, torch.tensor([[1, 2], [3, -9]]), *lengths)
torch.nn.functional.ctc_loss(scores, torch.tensor([[1, 7], [3, 0]]), *lengths)
print("done")
