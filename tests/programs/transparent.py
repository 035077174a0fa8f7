"""What a program can see of the patched functions is as it was."""
import copy
import pickle

import torch
import torch.nn.functional as F


class Holder:
    pick = torch.gather


class Seen(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        assert func in (torch.gather, torch.Tensor.gather, torch.Tensor.__getitem__), func
        return torch.zeros(1)


x, i = torch.randn(2, 3), torch.zeros(2, 1, dtype=torch.long)
assert torch.equal(Holder().pick(x, 1, i), x.gather(1, i)), "no binding"
assert pickle.loads(pickle.dumps(torch.gather)) == torch.gather == copy.deepcopy(torch.gather)
assert pickle.loads(pickle.dumps(F.one_hot)) is F.one_hot
assert torch.gather.__name__ == "gather" and torch.Tensor.__getitem__.__name__ == "__getitem__"
seen = x.as_subclass(Seen)
torch.gather(seen, 1, i), seen.gather(1, i), seen[i]
assert torch.jit.trace(lambda a, b: a.gather(1, b) + torch.gather(a, 1, b), (x, i))(x, i).shape == (2, 1)


@torch.jit.script
def scripted(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(a, b) + torch.gather(a, 0, b.unsqueeze(1)).sum()


scripted(x, torch.tensor([0, 1]))

# A tensor is no sequence for C: a list of 0-dim tensors is a list of numbers.
zero, one = torch.arange(2.0)
assert torch.tensor([zero, one]).tolist() == [0.0, 1.0] and "__getitem__" not in vars(torch.Tensor)
y = torch.zeros(3)
y[torch.tensor([True, False, True])] = 2.0
y[1], y[-1:] = zero, 5
assert y.tolist() == [2.0, 0.0, 5.0] and [v.item() for v in y[[0, 2]]] == [2.0, 5.0]
for wrong in (lambda: y[5], lambda: y.__delitem__(0)):
    try:
        wrong()
    except (IndexError, TypeError, AttributeError):
        continue
    raise AssertionError("no error")
print("as it was")
