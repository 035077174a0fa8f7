"""The hooks break no graph, and compiled code is looked at all the same with the eager backend."""
import torch
import torch.nn.functional as F


def step(scores, labels, table):
    picked = table[labels] + F.embedding(labels, table) + torch.index_select(table, 0, labels)
    return (F.cross_entropy(scores, labels) + picked.sum() + scores.gather(1, labels[:, None]).sum()
            + torch.gather(scores, 1, labels[:, None]).sum())


scores, labels, table = torch.randn(4, 3), torch.tensor([0, 1, 2, 0]), torch.randn(3, 2)
compiled = torch.compile(step, backend="eager", fullgraph=True)
assert torch.allclose(compiled(scores, labels, table), step(scores, labels, table))
print("one graph")
