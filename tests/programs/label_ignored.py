"""Nothing is wrong: what is out of range is ignored, negative indices count from the end, an error is caught."""
import torch
import torch.nn.functional as F

F.cross_entropy(torch.randn(3, 5), torch.tensor([0, 255, 4]), ignore_index=255)
F.cross_entropy(torch.randn(2, 5), torch.tensor([0, -100]))
table = torch.randn(6, 2)
table[torch.tensor([-6, 5])], table[..., torch.tensor([-2, 1])], table[table > 0]
table[torch.zeros(0, dtype=torch.long)], table[0:0, torch.tensor([9])]
try:
    F.cross_entropy(torch.randn(2, 5), torch.zeros(2, 5, dtype=torch.long))
except RuntimeError:
    print("caught")
