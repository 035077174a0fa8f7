"""
The entry points of PyTorch that consume indices, labels or probabilities, and the checks before them.

One row of ENTRIES an operation. The C++ functions beneath torch.nn.functional are patched rather
than the Python ones above them: every way of calling a loss passes there, the guard adds no frame to
a traceback, and torch.compile still finds each function by the name it knows it by.
"""
import threading

import torch

from cuwhy_agent import blame, checks, findings, look, wire

FUNCTION, METHOD = "torch", "torch.Tensor"
F = "torch.nn.functional."


class Entry:
    """One operation: where it is found, what it is called in reports, and the functions that look at it."""

    def __init__(self, spots, check, failed=None, op=None, position=-1, operand=None, user_position=None):
        self.spots = spots            # (owner, attribute) pairs
        self.check, self.failed = check, failed
        self.op = op                  # in the user's words; None: owner.attribute
        self.position = position      # see guard(): the argument that must hold an index tensor
        self.operand = operand        # (role, position, names) of the operand that blame.dtype looks at
        self.user_position = operand[1] if operand and user_position is None else user_position


def both(*names):
    return [(FUNCTION, name) for name in names] + methods(*names)


def methods(*names):
    return [(METHOD, name) for name in names]


def beneath(*names):
    return [("torch._C._nn", name) for name in names]


INDEX = ("index", 2, ("index",))
INDEX_OF_ALL = ("index", 1, ("index",))

ENTRIES = (
    Entry(both("gather", "index_select", "index_add", "index_copy", "index_reduce",
               "scatter", "scatter_add", "scatter_reduce") +
          methods("index_add_", "index_copy_", "index_reduce_",
                  "scatter_", "scatter_add_", "scatter_reduce_"),
          checks.along_dim, blame.dtype, operand=INDEX),
    Entry(both("index_fill") + methods("index_fill_"),
          checks.along_dim_wrapping, blame.dtype, operand=INDEX),
    Entry(both("take") + methods("put_", "put") + [(FUNCTION, "put")],
          checks.over_all, blame.dtype, operand=INDEX_OF_ALL),
    Entry(both("take_along_dim"), checks.take_along_dim),
    Entry(methods("__getitem__"), checks.subscript, blame.subscript, "torch.Tensor.index", position=1),
    Entry(methods("__setitem__"), checks.subscript, blame.subscript, "torch.Tensor.index_put_",
          position=1),
    Entry(both("index_put", "index_put_"), checks.index_put),
    Entry(both("masked_scatter") + methods("masked_scatter_"), checks.masked_scatter),
    Entry([(FUNCTION, "embedding"), (FUNCTION, "embedding_renorm_")], checks.embedding, blame.dtype,
          F + "embedding", operand=("input", 1, ("indices",)), user_position=0),
    Entry([(FUNCTION, "embedding_bag")], checks.embedding_bag, blame.dtype,
          F + "embedding_bag", operand=("input", 1, ("indices",)), user_position=0),
    Entry(beneath("one_hot") + [("torch.nn.functional", "one_hot")], checks.one_hot, op=F + "one_hot"),
    Entry(beneath("cross_entropy_loss"), checks.cross_entropy, blame.target, F + "cross_entropy"),
    Entry(beneath("nll_loss_nd", "nll_loss", "nll_loss2d"), checks.cross_entropy, blame.target,
          F + "nll_loss"),
    Entry(beneath("multi_margin_loss"), checks.multi_margin, blame.target, F + "multi_margin_loss"),
    Entry(beneath("multilabel_margin_loss"), checks.multilabel_margin, op=F + "multilabel_margin_loss"),
    Entry(beneath("binary_cross_entropy"), checks.binary_cross_entropy, blame.binary,
          F + "binary_cross_entropy"),
    Entry([(FUNCTION, "ctc_loss")], checks.ctc_loss, op=F + "ctc_loss"),
    Entry(beneath("max_unpool2d"), checks.max_unpool, op=F + "max_unpool2d"),
    Entry(beneath("max_unpool3d"), checks.max_unpool, op=F + "max_unpool3d"),
    Entry(both("multinomial"), checks.multinomial),
    Entry(both("bernoulli") + methods("bernoulli_"), checks.bernoulli),
    Entry([(FUNCTION, "poisson")], checks.poisson),
    Entry(both("bincount"), checks.bincount, blame.dtype, operand=("input", 0, ("input",))),
    Entry(both("repeat_interleave"), checks.repeat_interleave, blame.dtype,
          operand=("repeats", 1, ("repeats",))),
    Entry([(FUNCTION, "_assert_async")], checks.assert_async),
)

tracing = torch._C._get_tracing_state

counts = {}   # op -> the Hooks of that name
_guards = {}  # original -> what stands in its place: one however many names it has, or it cannot be pickled


class Hook:
    """One patched place of an entry, with its counts; this is what a check gets."""

    def __init__(self, entry, owner, name):
        self.op = entry.op or "%s.%s" % (owner, name)
        self.operand, self.user_position = entry.operand, entry.user_position
        self.check, self.failed = entry.check, entry.failed
        self.calls = self.unseen = 0
        self.kept = {}  # thread -> Finding of the running call, told only if what it raises is not caught

    def before(self, args, kwargs):
        if tracing() is not None:
            return  # torch.jit.trace: sizes are not numbers, and nothing may be recorded
        if self.kept:
            self.kept.pop(threading.get_ident(), None)
        fault = self.check(self, args, kwargs)
        finding = findings.report(self, fault, args, kwargs) if fault is not None else None
        if finding is not None:
            self.kept[threading.get_ident()] = finding

    def after(self, args, kwargs, error):
        """The call raised."""
        kept = self.kept.pop(threading.get_ident(), None)
        if kept is not None:
            findings.pend(kept, error)
            return
        fault = self.failed(self, args, kwargs, error) if self.failed else None
        if fault is not None:
            findings.keep(self, fault, error)


def owner_of(name):
    owner = torch
    for part in name.split(".")[1:]:
        owner = getattr(owner, part)
    return owner


def install():
    for entry in ENTRIES:
        for spot, name in entry.spots:
            patch(entry, spot, name)
    items = [_guards[getattr(torch.Tensor, name)] for name in ITEMS if name not in vars(torch.Tensor)]
    if items and not look.guard_items(*items):
        wire.note("x[index] is not looked at: the agent's C part is missing, or does not fit this Python")


ITEMS = ("__getitem__", "__setitem__")


def patch(entry, spot, name):
    owner = owner_of(spot)
    original = getattr(owner, name, None)
    if original is None:
        return  # this version of PyTorch has no such operation
    guard(entry, spot, name, original)
    # As methods these two would make sequences of tensors: install() puts them into the type's slots. Where
    # the redirection has made them methods already, it also deals with what comes of it.
    if name not in ITEMS or name in vars(owner):
        setattr(owner, name, _guards[original])


def guard(entry, spot, name, original):
    if original not in _guards:
        hook = Hook(entry, spot, name)
        make = look.method if spot == METHOD else look.guard
        _guards[original] = make(original, hook.before, hook.after, entry.position)
        counts.setdefault(hook.op, []).append(hook)
        tell_torchscript(original, _guards[original])


def tell_torchscript(original, guard):
    """TorchScript knows functions by their id; if it has made its table already, add ours to it."""
    builtins = torch.jit._builtins
    if builtins._builtin_table is not None and id(original) in builtins._builtin_table:
        builtins._register_builtin(guard, builtins._builtin_table[id(original)])


def checked():
    """What `checked` events say: one an operation that was called."""
    for op, hooks in counts.items():
        calls, unseen = sum(one.calls for one in hooks), sum(one.unseen for one in hooks)
        if calls or unseen:
            yield {"op": op, "calls": calls, "unseen": unseen}
