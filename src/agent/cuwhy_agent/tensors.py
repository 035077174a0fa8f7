"""
How a tensor is moved, and how it is asked where it is (mode `redirect`).

A move between logical devices always makes a copy, as it does in CUDA; one to the device where the
tensor is already gives the tensor itself.
"""
import torch

from . import logical, operators
from .logical import CPU, Tensor, base, canonical, mark, real, thread, unguarded
from .rules import Rule

LEGACY = {"Float": torch.float32, "Double": torch.float64, "Half": torch.float16, "BFloat16": torch.bfloat16,
          "Byte": torch.uint8, "Char": torch.int8, "Short": torch.int16, "Int": torch.int32,
          "Long": torch.int64, "Bool": torch.bool}
TO_ARGUMENTS = ("device", "dtype", "non_blocking", "copy")
TO_RULE = Rule("to", "torch.Tensor")
SET_RULE = Rule("set_", "torch.Tensor")
GRAD_RULE = Rule("grad", "torch.Tensor")
NEW_RULE = Rule("new", "torch.Tensor")
DATA_NEW = base.__new__

_to, _type, _numpy, _set = Tensor.to, Tensor.type, Tensor.numpy, Tensor.set_
_grad = base.grad


def move(tensor, device, **options):
    """tensor.to(device, ...) for a logical device."""
    if logical.of(tensor) is not device:
        options["copy"] = True
    return operators.run(_to, TO_RULE, (tensor,), dict(options, device=device))


def to(self, *args, **kwargs):
    options = dict(kwargs)
    first = args[0] if args else None
    if isinstance(first, torch.dtype) or (not args and "device" not in kwargs and "other" not in kwargs):
        return operators.run(_to, TO_RULE, (self,) + args, kwargs)
    if isinstance(first, Tensor) or isinstance(kwargs.get("other"), Tensor):
        other = options.pop("other", first)
        options.update(zip(TO_ARGUMENTS[2:], args[1:]))
        options.update(device=logical.answer(other), dtype=other.dtype)
    else:
        options.update(zip(TO_ARGUMENTS, args))
    device = canonical(options.pop("device", None))
    if options.get("dtype", self) is None:
        del options["dtype"]
    if device is None:
        return operators.run(_to, TO_RULE, (self,), options)
    return move(self, device, **options)


def cuda(self, device=None, non_blocking=False, memory_format=torch.preserve_format):
    return move(self, canonical("cuda" if device is None else device), non_blocking=non_blocking,
                memory_format=memory_format)


def cpu(self, memory_format=torch.preserve_format):
    return move(self, CPU, memory_format=memory_format)


def type_(self, dtype=None, non_blocking=False, **kwargs):
    """Names of types say the device too: torch.cuda.FloatTensor."""
    if dtype is None:
        name = _type(self)
        return name.replace("torch.", "torch.cuda.", 1) if logical.answer(self).type == "cuda" else name
    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", "")
    element = LEGACY.get(name.rpartition(".")[2].replace("Tensor", ""))
    if isinstance(dtype, torch.dtype) or element is None:
        return operators.run(_type, TO_RULE, (self, dtype, non_blocking), kwargs)
    on_cuda = ".cuda." in (name if isinstance(dtype, str) else "%s.%s" % (dtype.__module__, name))
    return move(self, logical.cuda() if on_cuda else CPU, dtype=element, non_blocking=non_blocking)


def type_as(self, other):
    return move(self, logical.answer(other), dtype=other.dtype)


def numpy(self, *args, **kwargs):
    if not (kwargs.get("force") or (args and args[0])):
        device = logical.answer(self)
        if device.type == "cuda":
            raise TypeError("can't convert %s device type tensor to numpy. Use Tensor.cpu() to copy the "
                            "tensor to host memory first." % device)
    return _numpy(self, *args, **kwargs)


def get_device(self):
    device = logical.answer(self)
    return device.index if device.type == "cuda" else -1


def pin_memory(self, device=None):
    if logical.answer(self).type == "cuda":
        raise RuntimeError("cannot pin '%s' only dense CPU tensors can be pinned" % type_(self))
    if is_pinned(self):
        return self
    with unguarded():
        out = base.clone(self)
        logical.pin(out)
    return out


def is_pinned(self, device=None):
    return logical.is_pinned(self)


def record_stream(self, stream):
    return None


def set_(self, *args, **kwargs):
    """Storages that come from Python (files, other processes) are on the CPU unless something is known."""
    out = operators.run(_set, SET_RULE, (self,) + args, kwargs)
    with unguarded():
        mark(self, CPU)
    return out


def new(*args, **kwargs):
    """torch.Tensor(...): on the device of the default tensor type."""
    device = canonical(kwargs.pop("device", None))
    args, kwargs = operators.numbers_for_tensors(NEW_RULE, args, kwargs)
    out = DATA_NEW(*args, **kwargs)
    with unguarded():
        mark(out, operators.legacy_default() if device is None else device)
    return out


def _get_grad(self):
    grad = _grad.__get__(self)
    if grad is not None:
        with unguarded():
            mark(grad, logical.look(self))
    return grad


def _set_grad(self, grad):
    if isinstance(grad, Tensor) and not thread.quiet:
        mine, other = logical.of(self), logical.of(grad)
        if None not in (mine, other) and mine is not other:
            odd, place = (grad, self) if mine is not CPU else (self, grad)
            operators.refuse(GRAD_RULE, (odd, place, "grad on the device of its tensor"), (self, grad), {})
    _grad.__set__(self, grad)


def _storage_device(self):
    device = None if thread.honest else logical.of_storage(self)
    return _real_storage_device(self) if device is None else device


def _new_storage(cls, *args, **kwargs):
    device = canonical(kwargs.get("device"))
    if device is not None:
        kwargs["device"] = real(device)
    storage = torch._C.StorageBase.__new__(cls, *args, **kwargs)
    if device is not None and device.type in ("cuda", "cpu"):
        logical.mark_storage(storage, device)
    return storage


METHODS = [to, cuda, cpu, type_, type_as, numpy, get_device, pin_memory, is_pinned, record_stream, set_]
_real_storage_device = None


def wrap_all():
    global _real_storage_device
    for function in METHODS:
        name = function.__name__ if hasattr(Tensor, function.__name__) else function.__name__.rstrip("_")
        function.__name__, function.__qualname__, function.__module__ = name, "Tensor." + name, "torch"
        function.__doc__ = getattr(base, name).__doc__
        setattr(Tensor, name, function)
    Tensor.__new__ = staticmethod(new)
    Tensor.device = property(logical.answer, doc=base.device.__doc__)
    Tensor.is_cuda = property(lambda self: logical.answer(self).type == "cuda")
    Tensor.is_cpu = property(lambda self: logical.answer(self).type == "cpu")
    Tensor.grad = property(_get_grad, _set_grad, _grad.__delete__, base.grad.__doc__)
    storage = torch.UntypedStorage
    _real_storage_device = storage.device.__get__
    storage.device = property(_storage_device)
    storage.__new__ = staticmethod(_new_storage)
