"""
Every operation of PyTorch, wrapped (mode `redirect`): a CUDA device among the arguments becomes the
CPU, the logical device goes from the operands to the result, and operands on different devices are
found before the call.

The functions made in C are what is wrapped, wherever Python holds them: that works in every thread,
inside backward, in functions written in Python and in all versions, and unlike a TorchFunctionMode it
does not turn off the fast paths of PyTorch, so the numbers stay those of a plain run on the CPU.
Whatever goes wrong in here, the original is called.
"""
import functools
import sys
import types

import torch

from . import frames, logical
from .logical import CPU, Tensor, base, canonical, look, mark, real, thread, unguarded
from .rules import COPIES_DATA, SHARES_DATA, TAKES_DATA, TAKES_DTYPE, Rule, lengths

SCAN_MAX = 64  # elements of a list that are looked through for tensors when the first is none

_tensor = torch.tensor
_finding = None  # set by wrap_all
_DeviceContext = None  # what `with torch.device(...)` enters, from 2.0 on
_legacy_default = CPU  # chosen by set_default_tensor_type


def set_legacy_default(device):
    global _legacy_default
    _legacy_default = device


def legacy_default():
    return _legacy_default


def _context_device():
    """What `with torch.device(...)` or set_default_device says, if anything."""
    for depth in range(torch._C._len_torch_function_stack() - 1, -1, -1) if _DeviceContext else ():
        mode = torch._C._get_function_stack_at(depth)
        if isinstance(mode, _DeviceContext):
            return canonical(mode.device)
    return None


def default_device():
    """Where a new tensor goes when nobody says where."""
    return _context_device() or _legacy_default


def _collect(values, found):
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)) and value:
            if len(value) <= SCAN_MAX or isinstance(value[0], Tensor):
                _collect(value, found)


def _without_cuda(args, kwargs):
    """The arguments as a CPU takes them, and the logical device that they name, if any."""
    explicit = None
    if kwargs:
        explicit = canonical(kwargs.get("device"))
        if explicit is not None:
            kwargs = dict(kwargs, device=real(explicit))
        if kwargs.get("pin_memory"):
            kwargs = dict(kwargs, pin_memory=False)
    for value in args:
        if isinstance(value, logical.RealDevice):
            explicit = canonical(value)
            args = tuple(real(canonical(one)) if isinstance(one, logical.RealDevice) else one for one in args)
            break
    return args, kwargs, explicit


def _has_tensor(value):
    return isinstance(value, Tensor) or (type(value) in (list, tuple) and any(map(_has_tensor, value)))


def _as_number(tensor):
    """What PyTorch makes of a tensor among numbers, with its own error if there are several."""
    if tensor.dtype.is_complex:
        return base.__complex__(tensor)
    number = base.__float__(tensor) if tensor.dtype.is_floating_point else base.__int__(tensor)
    return bool(number) if tensor.dtype is torch.bool else number


def _dtype_of(value):
    """The type that PyTorch would infer for nested lists of numbers and tensors."""
    if type(value) in (list, tuple):
        return functools.reduce(torch.promote_types, map(_dtype_of, value))
    return value.dtype if isinstance(value, Tensor) else _tensor(value).dtype


def numbers_for_tensors(rule, args, kwargs):
    """
    torch.tensor([a, b]) of tensors, with numbers in their place: a Python function as __getitem__
    turns tensors into sequences for C, and then torch.tensor would look into them.
    """
    at = 1 if rule.owner == "torch.Tensor" else 0
    if len(args) <= at or isinstance(args[at], Tensor) or not _has_tensor(args[at]):
        return args, kwargs

    def plain(value):
        if isinstance(value, Tensor):
            return _as_number(value)
        return type(value)(map(plain, value)) if type(value) in (list, tuple) else value
    if rule.name in TAKES_DTYPE and kwargs.get("dtype") is None:
        own = args[0].dtype if rule.name == "new_tensor" else _dtype_of(args[at])
        kwargs = dict(kwargs, dtype=own)
    return args[:at] + (plain(args[at]),) + args[at + 1:], kwargs


def _result_device(rule, operands, explicit, args):
    """The device of the result; None when it is not known."""
    if explicit is not None:
        return explicit
    if rule.name in COPIES_DATA and args and isinstance(args[0], Tensor):
        return look(args[0])
    if rule.factory:
        return default_device()
    if not operands:
        return default_device() if rule.result != "passed" else None
    if rule.result == "self":
        return operands[0][1]
    known = [device for _, device in operands if device is not None]
    for device in known:
        if device is not CPU:
            return device
    return CPU if len(known) == len(operands) and rule.result != "passed" else None


def _differ(operands):
    first = None
    for _, device in operands:
        if device is not None and device is not first:
            if first is not None:
                return True
            first = device
    return False


def _settle(out, device, explicit, shares):
    """Marks the results. One that shares its memory with something on another device is copied."""
    if isinstance(out, Tensor):
        known = look(out)
        if known is device:
            return out
        if explicit if known is not None else shares and device is not CPU:
            out = base.clone(out)
        mark(out, device)
    elif isinstance(out, (list, tuple)):
        for one in out:
            _settle(one, device, False, False)
    return out


def run(original, rule, args, kwargs):
    """Calls an operation."""
    if rule.name in TAKES_DATA:
        args, kwargs = numbers_for_tensors(rule, args, kwargs)
    new_args, new_kwargs, explicit, device, odd = args, kwargs, None, None, None
    try:
        with unguarded():
            new_args, new_kwargs, explicit = _without_cuda(args, kwargs)
            if explicit is None and rule.name in COPIES_DATA:
                explicit = _context_device()
            tensors = []
            _collect(args, tensors)
            if kwargs:
                _collect(kwargs.values(), tensors)
            operands = [(tensor, look(tensor)) for tensor in tensors]
            device = _result_device(rule, operands, explicit, args)
            if rule.check is not None and not thread.quiet:
                if rule.always or _differ(operands):
                    odd = rule.check(rule, operands, args, kwargs)
    except Exception:
        pass  # the original says what is wrong with its arguments
    if odd is not None:
        refuse(rule, odd, args, kwargs)
    outer = thread.inside
    thread.inside = device or outer
    try:
        out = original(*new_args, **new_kwargs)
    except RuntimeError as error:
        out = _widened(original, rule, new_args, new_kwargs, str(error))
        if out is None:
            raise
    finally:
        thread.inside = outer
    if device is not None:
        try:
            with unguarded():
                if rule.check is lengths:
                    mark(out[1], CPU)  # batch_sizes
                out = _settle(out, device, explicit is not None, rule.name in SHARES_DATA)
        except Exception:
            pass
    return out


def _names(rule, tensor, other, args, kwargs):
    """What the operation calls an operand that is at odds with another one, and what the user calls both."""
    try:
        roles = rule.roles(args, kwargs)
    except Exception:
        roles = []
    pair = []
    stack = frames.here()
    for which in (tensor, other):
        role = next((name for one, name in roles if one is which), "operand")
        alike = [one for one, name in roles if name == role]
        at = next((i for i, one in enumerate(alike) if one is which), 0)
        position = rule.position(which, args)
        written = frames.argument(stack, which, position, role, rule.public())
        if written is None and rule.is_operator() and position in (0, 1):
            written = ("the left operand", "the right operand")[position]
        pair.append((role, written or (role if len(alike) < 2 else "%s[%d]" % (role, at))))
    return pair[0][0], pair[0][1], pair[1][1]


def refuse(rule, odd, args, kwargs):
    """Tells of a device mismatch, and raises what CUDA raises if the teller comes back."""
    tensor, other, expect = odd
    with logical.set_for_now("quiet", True):
        role, this, that = _names(rule, tensor, other, args, kwargs)
        here, there = logical.device_of(tensor), logical.device_of(other)
        _finding(cause="device_mismatch", op=rule.public(), role=role, tensor=tensor, expect=expect,
                 position=rule.position(tensor, args),
                 detail="%s is on %s while %s is on %s" % (this, here, that, there))
    if role == "index":
        raise RuntimeError("indices should be either on cpu or on the same device as the indexed tensor (%s)"
                           % logical.device_of(args[0]))
    if rule.check is lengths:
        raise RuntimeError("'lengths' argument should be a 1D CPU int64 tensor, but got 1D %s Long tensor"
                           % here)
    raise RuntimeError("Expected all tensors to be on the same device, but found at least two devices, "
                       "%s and %s! (when checking argument %s of %s)" % (there, here, role, rule.public()))


def _map_tensors(value, change):
    if isinstance(value, Tensor):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(_map_tensors(one, change) for one in value)
    return value


def _widened(original, rule, args, kwargs, error):
    """Does in float32 what a GPU can do in 16 bits and this CPU cannot, and under autocast also what
    mixes types, since autocast is off here. None when that is not what went wrong."""
    narrow = next((dtype for name, dtype in (("'Half'", torch.float16), ("'BFloat16'", torch.bfloat16))
                   if "not implemented for " + name in error), None)
    small = (torch.float16, torch.bfloat16)
    tensors = []
    _collect(args, tensors)
    mixed = thread.autocast and "type" in error and any(tensor.dtype in small for tensor in tensors)
    if narrow is None and not mixed:
        return None

    def widen(tensor):
        return base.float(tensor) if tensor.dtype in small else tensor

    def restore(tensor):
        return base.to(tensor, narrow) if tensor.dtype is torch.float32 else tensor

    wide_kwargs = {key: _map_tensors(value, widen) for key, value in kwargs.items() if key != "out"}
    if wide_kwargs.get("dtype") in small:
        wide_kwargs["dtype"] = torch.float32
    try:
        out = original(*_map_tensors(tuple(args), widen), **wide_kwargs)
    except (RuntimeError, TypeError):
        return None
    out = _map_tensors(out, restore) if narrow is not None else out
    target = kwargs.get("out")
    if target is None and isinstance(out, Tensor) and (
            rule.name.startswith("__i") or (rule.name.endswith("_") and not rule.name.endswith("__"))):
        target = args[0]
    if isinstance(target, Tensor):
        with torch.no_grad() if not torch.is_grad_enabled() else torch.enable_grad():
            return base.copy_(target, out)
    return out


class Operation:
    """
    A function of PyTorch's, wrapped. Like the builtin that it stands for it does not become a method
    in a class body, is pickled by its name, and is found in tables that are keyed by the builtin.
    """
    def __init__(self, original, rule, module):
        self.original = original
        self.rule = rule
        self.__name__ = self.__qualname__ = original.__name__
        self.__module__ = module
        self.__doc__ = original.__doc__

    def __call__(self, *args, **kwargs):
        return run(self.original, self.rule, args, kwargs)

    def __eq__(self, other):
        return other is self or other is self.original or NotImplemented

    def __hash__(self):
        return hash(self.original)

    def __reduce__(self):
        return self.__name__

    def __repr__(self):
        return repr(self.original)


def method(original, rule):
    """A method of Tensor's, wrapped."""
    def call(*args, **kwargs):
        return run(original, rule, args, kwargs)
    call.__name__ = rule.name
    call.__qualname__ = "Tensor." + rule.name
    call.__module__ = "torch"
    call.__doc__ = original.__doc__
    return call


# Methods in C that give no tensor, or that are wrapped on their own.
NOT_OPERATIONS = frozenset("""
    size dim ndimension numel nelement stride storage_offset is_contiguous data_ptr const_data_ptr
    element_size item tolist __bool__ __int__ __float__ __index__ __complex__ __long__ __nonzero__
    is_floating_point is_complex is_signed is_inference is_conj is_neg untyped_storage _storage has_names
    dense_dim sparse_dim is_coalesced is_nonzero is_distributed as_subclass retain_grad _fix_weakref
    _use_count __reduce__ __sizeof__ __getstate__ requires_grad_ _is_view _nnz _dimI _dimV _view_func
    _view_func_unsafe _rev_view_func_unsafe get_device numpy to cuda cpu type type_as pin_memory is_pinned
    record_stream set_ _make_subclass qscheme is_pinned
""".split())
PYTHON_OPERATIONS = """
    __rsub__ __rdiv__ __rtruediv__ __pow__ __ipow__ __rpow__ __floordiv__ __rfloordiv__ __rlshift__
    __rrshift__ __rmatmul__ __rmod__
""".split()
NAMESPACES = (  # where C functions are, and what users call that place
    ("_nn", "torch.nn.functional"), ("_fft", "torch.fft"), ("_linalg", "torch.linalg"),
    ("_special", "torch.special"), ("_sparse", "torch.sparse"), ("_nested", "torch.nested"),
)
def parse_to(original):
    """torch._C._nn._parse_to: the arguments of Module.to"""
    def _parse_to(*args, **kwargs):
        if args and isinstance(args[0], int):
            args = (canonical(args[0]),) + args[1:]
        parsed = original(*args, **kwargs)
        if args and isinstance(args[0], Tensor):
            parsed = (logical.answer(args[0]),) + tuple(parsed[1:])
        return parsed
    return _parse_to


NOT_FUNCTIONS = frozenset("""
    _parse_to _has_compatible_shallow_copy_type can_cast promote_types result_type get_device
    set_flush_denormal typename device_count
""".split())  # and is_*: they take no device and give no tensor; some must stay builtins for torch._dynamo


def _wrap_functions(swaps):
    functions = torch._C._VariableFunctions
    seen = torch._C._VariableFunctions = types.SimpleNamespace()
    for name in dir(functions):
        original = getattr(functions, name)
        if not name.startswith(("__", "is_")) and callable(original) and name not in NOT_FUNCTIONS:
            module = "torch" if hasattr(torch, name) else "torch._VF"
            operation = Operation(original, Rule(name, "torch"), module)
            swaps[id(original)] = (original, operation)
            setattr(torch._VF, name, operation)
            setattr(seen, name, operation)
        elif not name.startswith("__"):
            setattr(seen, name, original)
    torch._C._nn._parse_to = parse_to(torch._C._nn._parse_to)
    for place, owner in NAMESPACES:
        module = getattr(torch._C, place, None)
        for name in dir(module) if module else ():
            original = getattr(module, name)
            if isinstance(original, types.BuiltinFunctionType) and name not in NOT_FUNCTIONS:
                operation = Operation(original, Rule(name, owner), "torch._C." + place)
                swaps[id(original)] = (original, operation)
                setattr(module, name, operation)


def _wrap_methods():
    for name in dir(Tensor):
        original = getattr(Tensor, name)
        in_c = isinstance(original, type(base.add)) or name in ("__getitem__", "__setitem__")
        if name in PYTHON_OPERATIONS or (in_c and name not in NOT_OPERATIONS):
            setattr(Tensor, name, method(original, Rule(name, "torch.Tensor")))


def _wrap_dispatch():
    """torch.ops and compiled TorchScript: followed, but not checked."""
    for owner in (torch._ops.OpOverload, torch._ops.OpOverloadPacket):
        owner.__call__ = method(owner.__call__, Rule("__call__", "torch.ops", checked=False))
    passed = Rule("__call__", "torch.jit", checked=False)
    passed.result = "passed"
    for owner in (torch._C.ScriptMethod, torch._C.ScriptFunction):
        try:
            owner.__call__ = method(owner.__call__, passed)
        except (AttributeError, TypeError):
            pass


def _wrap_backward(swaps):
    """Tells which device a backward pass runs for: the gradients in it are made in C++."""
    backward, grad = torch.autograd.backward, torch.autograd.grad

    def device_of_first(tensors):
        first = tensors if isinstance(tensors, Tensor) else next(iter(tensors), None)
        return logical.of(first) if isinstance(first, Tensor) else None

    @functools.wraps(backward)
    def new_backward(tensors, *args, **kwargs):
        tensors = tensors if isinstance(tensors, Tensor) else tuple(tensors)
        with logical.set_for_now("backward", device_of_first(tensors)):
            return backward(tensors, *args, **kwargs)

    @functools.wraps(grad)
    def new_grad(outputs, inputs, *args, **kwargs):
        outputs = outputs if isinstance(outputs, Tensor) else tuple(outputs)
        inputs = inputs if isinstance(inputs, Tensor) else tuple(inputs)
        with logical.set_for_now("backward", device_of_first(outputs)):
            grads = grad(outputs, inputs, *args, **kwargs)
        with unguarded():
            for tensor, one in zip((inputs,) if isinstance(inputs, Tensor) else inputs, grads):
                if isinstance(tensor, Tensor) and isinstance(one, Tensor):
                    mark(one, look(tensor))
        return grads

    swaps[id(backward)] = (backward, new_backward)
    swaps[id(grad)] = (grad, new_grad)


def sweep(swaps):
    """Puts the new functions and classes wherever a module of PyTorch holds the old ones."""
    def put(table):
        for key, value in list(table.items()):
            pair = swaps.get(id(value))
            if pair is not None:
                table[key] = pair[1]
            elif type(value) is dict and len(value) < SCAN_MAX and not key.startswith("__"):
                for inner, one in list(value.items()):
                    pair = swaps.get(id(one))
                    if pair is not None:
                        value[inner] = pair[1]

    for name, module in list(sys.modules.items()):
        if name == "torch" or name.startswith("torch."):
            if isinstance(module, types.ModuleType):
                put(vars(module))
    _tell_torchscript(swaps)


def _tell_torchscript(swaps):
    """TorchScript knows builtins by their id: it must take the new ones for the old."""
    builtins = torch.jit._builtins
    table = builtins._get_builtin_table()
    for old, new in swaps.values():
        if table.get(id(old)) is not None:
            table[id(new)] = table[id(old)]


def wrap_all(finding, swaps):
    global _finding, _DeviceContext
    _finding = finding
    try:
        from torch.utils._device import DeviceContext as _DeviceContext
        # The default device is added in `run`, and must not be added once more.
        _DeviceContext.__torch_function__ = lambda self, func, types, args=(), kwargs=None: func(
            *args, **(kwargs or {}))
    except ImportError:
        pass  # 1.13
    _wrap_functions(swaps)
    _wrap_methods()
    _wrap_dispatch()
    _wrap_backward(swaps)
