"""
Looking at the elements of a tensor: is any outside its range, and if so, which ones.

look() and the callables guard() and method() are the C extension's, or the same in Python where it
cannot be loaded.
"""
import functools
import sys
import threading
import types

import torch

ELEMENTS_MAX = 16      # bad elements and distinct bad values told of
VALUES_READ = 1 << 20  # bad elements read to find the distinct ones
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
REALS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
# Where a tensor really is: the redirection has Tensor.is_cpu say something else.
is_cpu = (getattr(torch._C, "TensorBase", None) or torch._C._TensorBase).is_cpu.__get__
PLAIN = (torch.Tensor, torch.nn.Parameter)  # exactly: subclasses may be fake, traced or on no device


def outside(values, low, high, ignore):
    """The mask of the elements that leave the range; NaN does, and infinity where there is no bound."""
    if values.dtype in REALS:
        high = float("inf") if high is None else high
        low = float("-inf") if low is None else low
        bad = ~((values >= low) & (values <= high)) | torch.isinf(values)
    else:
        bad = torch.zeros_like(values, dtype=torch.bool)
        if low is not None:
            bad |= values < low
        if high is not None:
            bad |= values > high
        if ignore is not None:
            bad &= values != ignore
    return bad


def details(tensor, low, high, ignore):
    """What a finding says of a tensor that has bad elements."""
    values = tensor.detach().reshape(-1)
    if values.dtype in INTEGERS:
        values = values.to(torch.int64)
    bad = outside(values, low, high, ignore)
    where = bad.nonzero().reshape(-1)
    distinct = list(dict.fromkeys(map(number, values[where[:VALUES_READ]].tolist())))
    known = values[~torch.isnan(values)] if values.dtype in REALS else values
    return {
        "bad_values": [float(one) if isinstance(one, str) else one for one in distinct[:ELEMENTS_MAX]],
        "bad_count": where.numel(),
        "bad_elements": [{"at": element(int(one), tensor.shape)} for one in where[:ELEMENTS_MAX]],
        "min": known.min().item() if known.numel() else None,
        "max": known.max().item() if known.numel() else None,
    }


def number(value):
    """A value that equals itself, so that many NaN are one distinct value."""
    return value if value == value else "nan"


def element(flat, shape):
    at = []
    for size in reversed(shape):
        at.append(flat % size)
        flat //= size
    return at[::-1]


_local = threading.local()
is_compiling = torch.compiler.is_compiling if hasattr(torch, "compiler") else lambda: False


def slow_quiet(by):
    _local.depth = getattr(_local, "depth", 0) + by


def slow_look(tensor, low, high, ignore):
    kinds = REALS if isinstance(low, float) or isinstance(high, float) else INTEGERS
    if type(tensor) not in PLAIN or not is_cpu(tensor) or tensor.dtype not in kinds:
        return None
    try:
        if tensor.layout is not torch.strided or (tensor.numel() and not tensor.data_ptr()):
            return None
        values = tensor.detach() if kinds is REALS else tensor.to(torch.int64)
        return bool(outside(values, low, high, ignore).any())
    except Exception:
        return None


class slow_guard:
    """A function that runs a check and then the original, which shows through in all else."""

    def __init__(self, original, check, failed, position):
        self.__dict__.update(_original=original, _check=check, _failed=failed, _position=position)
        for name in functools.WRAPPER_ASSIGNMENTS:
            if hasattr(original, name):
                setattr(self, name, getattr(original, name))

    def __call__(self, *args, **kwargs):
        if is_compiling() or getattr(_local, "depth", 0) or not self._worth(args):
            return self._original(*args, **kwargs)
        self._quietly(self._check, args, kwargs or None)
        try:
            return self._original(*args, **kwargs)
        except Exception as error:
            if self._failed:
                self._quietly(self._failed, args, kwargs or None, error)
            raise

    def _worth(self, args):
        if self._position < 0:
            return True
        if len(args) <= self._position:
            return False
        key = args[self._position]
        parts = key if isinstance(key, tuple) else (key,)
        return not all(one is None or one is ... or isinstance(one, (int, slice, str)) for one in parts)

    def _quietly(self, function, *args):
        slow_quiet(1)
        try:
            function(*args)
        except Exception:
            pass
        finally:
            slow_quiet(-1)

    @property
    def __wrapped__(self):
        return self._original

    def __getattr__(self, name):
        return getattr(self._original, name)

    def __reduce_ex__(self, protocol):
        return self._original.__reduce_ex__(protocol)

    def __eq__(self, other):
        return self._original == (other._original if isinstance(other, slow_guard) else other)

    def __hash__(self):
        return hash(self._original)

    def __repr__(self):
        return repr(self._original)


class slow_method(slow_guard):
    """Likewise, and binds like a method."""

    def __get__(self, instance, owner=None):
        return self if instance is None else types.MethodType(self, instance)


try:
    from cuwhy_agent import _fast
    _fast.setup(torch, is_cpu)
    look, guard, method, quiet = _fast.look, _fast.guard, _fast.method, _fast.quiet
    guard_items = _fast.guard_items
    if sys.version_info < (3, 9):  # there the stable ABI has no weak references, which TorchScript needs
        guard = slow_guard
except Exception:
    look, guard, method, quiet = slow_look, slow_guard, slow_method, slow_quiet
    guard_items = lambda read, write: False


class hushed:
    """with hushed(): the agent's own work, at which no check looks."""

    def __enter__(self):
        quiet(1)

    def __exit__(self, *_):
        quiet(-1)
