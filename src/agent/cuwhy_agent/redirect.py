"""
Mode `redirect`: the program runs as on a machine with a GPU, and everything is done by the CPU.

Every way of saying CUDA is answered: queries (answers.py), tensors and the operations on them
(tensors.py, operators.py, and the devices they would be on: logical.py, rules.py), and in this file
what is built of those: checkpoints, data parallel models, process groups, autocast, compiled code and
compiled extensions. `install` must run before anything else has wrapped PyTorch's functions.
"""
import contextlib
import functools
import inspect
import sys

import torch

from . import answers, logical, operators, tensors
from .answers import note, refuse
from .logical import CPU, RealDevice, Tensor, canonical, unguarded

device_of = logical.device_of


def install(say, finding):
    """`say(event, **fields)` sends an event; `finding` makes and sends a finding, and need not come back."""
    swaps = {}  # id of what is replaced -> (it, its replacement)
    tensors.wrap_all()
    operators.wrap_all(finding, swaps)
    answers.answer_all(lambda text: say("note", text=text), swaps)
    for part in PARTS:
        try:
            part(swaps)
        except Exception as error:  # a version of PyTorch that has it otherwise
            note("redirection of %s failed: %s" % (part.__name__.strip("_"), error))
    operators.sweep(swaps)


def _changed(function, change):
    """`function` with its bound arguments passed through change(arguments)."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return function(*args, **kwargs)
        bound.apply_defaults()
        change(bound.arguments)
        return function(*bound.args, **bound.kwargs)
    return call


def _swap(swaps, owner, name, new):
    swaps[id(getattr(owner, name))] = (getattr(owner, name), new)
    setattr(owner, name, new)


# Types.


class _DeviceType(type):
    """torch.device(0) is a CUDA device, which newer versions refuse to say without one."""
    def __call__(cls, *args, **kwargs):
        if args and isinstance(args[0], int) and len(args) == 1:
            return RealDevice("cuda", args[0])
        return RealDevice(*args, **kwargs)

    def __instancecheck__(cls, value):
        return isinstance(value, RealDevice)

    def __subclasscheck__(cls, other):
        return issubclass(other, RealDevice) or type.__subclasscheck__(cls, other)

    def __eq__(cls, other):
        return other is cls or other is RealDevice

    def __hash__(cls):
        return hash(RealDevice)


def _device_type(swaps):
    try:
        if RealDevice(0).type == "cuda":
            return
    except RuntimeError:
        pass
    _swap(swaps, torch, "device", _DeviceType("device", (), {"__module__": "torch"}))


class _LegacyType(type):
    """torch.FloatTensor, torch.cuda.FloatTensor"""
    def __call__(cls, *args, **kwargs):
        kwargs.pop("device", None)
        args = operators.numbers_for_tensors(tensors.NEW_RULE, (cls,) + args, {})[0][1:]
        tensor = cls.original(*args, **kwargs)
        with unguarded():
            logical.mark(tensor, logical.cuda() if cls.is_cuda else CPU)
        return tensor

    def __instancecheck__(cls, value):
        return (isinstance(value, Tensor) and value.dtype == cls.dtype
                and value.is_cuda == cls.is_cuda and value.layout == torch.strided)


def _legacy_types(swaps):
    for place in (torch, torch.cuda):
        for element, dtype in tensors.LEGACY.items():
            name = element + "Tensor"
            if hasattr(place, name) and hasattr(torch, name):
                original = getattr(torch, name)
                original = getattr(original, "original", original)
                _swap(swaps, place, name, _LegacyType(name, (), {
                    "__module__": place.__name__, "original": original, "dtype": dtype,
                    "layout": torch.strided, "is_cuda": place is torch.cuda}))
    set_type = torch.set_default_tensor_type

    @functools.wraps(set_type)
    def set_default_tensor_type(t):
        name = t if isinstance(t, str) else "%s.%s" % (t.__module__, t.__name__)
        kind = getattr(torch, name.rpartition(".")[2], t)
        set_type(getattr(kind, "original", kind))
        operators.set_legacy_default(logical.cuda() if ".cuda." in name else CPU)
    _swap(swaps, torch, "set_default_tensor_type", set_default_tensor_type)


def _generators(swaps):
    real = torch._C.Generator

    class GeneratorType(type(real)):
        def __instancecheck__(cls, value):
            return isinstance(value, real)

    def new(cls, device="cpu"):
        generator = real.__new__(cls)
        generator._logical = canonical(device)
        return generator
    _swap(swaps, torch, "Generator", GeneratorType("Generator", (real,), {
        "__module__": "torch", "__new__": new, "device": property(lambda self: self._logical)}))


# Checkpoints and other processes.


def _serialization(swaps):
    """The device of a storage is written and read as if it was real."""
    def tag(storage):
        device = logical.of_storage(getattr(storage, "_untyped_storage", storage))
        return str(device) if device is not None and device.type == "cuda" else None

    def restore(storage, location):
        if not location.startswith(("cuda", "cpu")):
            return None
        plain = getattr(storage, "_untyped_storage", storage)
        logical.mark_storage(plain, canonical(location))
        return storage
    torch.serialization.register_package(5, tag, restore)  # CUDA's own has 20: less is asked earlier

    jit_load = torch.jit.load

    @functools.wraps(jit_load)
    def load(f, map_location=None, *args, **kwargs):
        device = canonical(map_location) if map_location is not None else None
        module = jit_load(f, logical.real(device), *args, **kwargs)
        if device is not None:
            with unguarded():
                for tensor in list(module.parameters()) + list(module.buffers()):
                    logical.mark(tensor, device)
        return module
    _swap(swaps, torch.jit, "load", load)


class _Reduced(object):
    """Something that has been reduced for pickling."""
    def __init__(self, reduced):
        self.reduced = reduced

    def __reduce__(self):
        return self.reduced


def _other_processes(swaps):
    """Tensors go to another process through shared memory wherever they seem to be, and are there again."""
    from multiprocessing.reduction import ForkingPickler
    import torch.multiprocessing  # noqa: F401 (registers the reducers)

    def honest(function):
        @functools.wraps(function)
        def call(value):
            with logical.set_for_now("honest", True):
                reduced = function(value)
            device = logical.of_storage(value) if isinstance(value, torch.UntypedStorage) else None
            if device is None or device is CPU:
                return reduced
            return torch.serialization.default_restore_location, (_Reduced(reduced), str(device))
        return call
    reducers = ForkingPickler._extra_reducers
    for kind, function in list(reducers.items()):
        if getattr(function, "__module__", "").startswith("torch."):
            reducers[kind] = honest(function)


# Models on several devices, and several processes.


def _moved(value, device):
    """What scatter does to the inputs of a model on one device."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[_moved(one, device) for one in value])
    if isinstance(value, (list, tuple)):
        return type(value)(_moved(one, device) for one in value)
    if isinstance(value, dict):
        return type(value)((key, _moved(one, device)) for key, one in value.items())
    return value


def _data_parallel(swaps):
    kind = torch.nn.DataParallel
    original = kind.__init__

    @functools.wraps(original)
    def init(self, module, device_ids=None, *args, **kwargs):
        original(self, module, device_ids, *args, **kwargs)
        if len(getattr(self, "device_ids", None) or ()) > 1:
            note("DataParallel ran on one device instead of %d" % len(self.device_ids))
            self.device_ids = self.device_ids[:1]

    def scatter(self, inputs, kwargs, device_ids):
        device = canonical(device_ids[0])
        return (_moved(tuple(inputs), device),), (_moved(dict(kwargs or {}), device),)
    kind.__init__, kind.scatter = init, scatter
    sync = torch.nn.SyncBatchNorm
    sync.forward = torch.nn.modules.batchnorm._BatchNorm.forward  # its kernels are CUDA's alone


class _Done(object):
    """A finished piece of work."""
    def wait(self, *args):
        return True

    def is_completed(self):
        return True


def _process_groups(swaps):
    """nccl is gloo, which has no device_id and no average."""
    distributed = torch.distributed
    if not distributed.is_available():
        return
    inner = distributed.distributed_c10d
    asked = []  # holds something once the program has named nccl

    def use_gloo(arguments):
        if arguments.get("backend") is None or "nccl" in str(arguments["backend"]).lower():
            asked.append("nccl")
            arguments["backend"] = "gloo"
        for name in ("device_id", "pg_options"):
            if name in arguments:
                arguments[name] = None

    def without_devices(arguments):
        arguments["device_ids"] = None
    for name, change in (("init_process_group", use_gloo), ("new_group", use_gloo),
                         ("barrier", without_devices)):
        _swap(swaps, inner, name, _changed(getattr(inner, name), change))
    reduce_all, average = inner.all_reduce, getattr(inner.ReduceOp, "AVG", None)

    @functools.wraps(reduce_all)
    def all_reduce(tensor, op=inner.ReduceOp.SUM, group=None, async_op=False):
        if average is None or op != average:
            return reduce_all(tensor, op, group, async_op)
        reduce_all(tensor, inner.ReduceOp.SUM, group)
        tensor.div_(distributed.get_world_size(group))
        return _Done() if async_op else None
    _swap(swaps, inner, "all_reduce", all_reduce)
    get_backend = inner.get_backend
    distributed.get_backend = lambda group=None: "nccl" if asked else get_backend(group)
    distributed.is_nccl_available = lambda: True


# Precision, optimizers, and code that is compiled.


def _autocast(swaps):
    """Autocast for CUDA is off, and a scaler has nothing to scale."""
    kind = torch.amp.autocast_mode.autocast if hasattr(torch, "amp") else torch.autocast
    original, enter, leave = kind.__init__, kind.__enter__, kind.__exit__

    @functools.wraps(original)
    def init(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        on_cuda = device_type == "cuda"
        if on_cuda:
            original(self, device_type, enabled=False, cache_enabled=cache_enabled)
        else:
            original(self, device_type, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
        self._for_cuda = on_cuda and enabled

    @functools.wraps(enter)
    def new_enter(self):
        logical.thread.autocast += self._for_cuda
        return enter(self)

    @functools.wraps(leave)
    def new_leave(self, *exc):
        logical.thread.autocast -= self._for_cuda
        return leave(self, *exc)
    kind.__init__, kind.__enter__, kind.__exit__ = init, new_enter, new_leave

    module = sys.modules.get("torch.amp.grad_scaler") or sys.modules["torch.cuda.amp.grad_scaler"]

    def disable(arguments):
        if str(arguments.get("device", "cuda")).startswith("cuda"):
            arguments["enabled"] = False
    module.GradScaler.__init__ = _changed(module.GradScaler.__init__, disable)


def _optimizers(swaps):
    """The loop over single tensors, which is what the CPU would run."""
    module = sys.modules["torch.optim.optimizer"]
    if hasattr(module, "_default_to_fused_or_foreach"):
        _swap(swaps, module, "_default_to_fused_or_foreach", lambda *args, **kwargs: (False, False))
    original = module.Optimizer.__init__

    @functools.wraps(original)
    def init(self, params, defaults):
        original(self, params, dict(defaults, fused=None) if defaults.get("fused") else defaults)
    module.Optimizer.__init__ = init


def _compiled(swaps):
    """torch.compile gives back what it got."""
    if not hasattr(torch, "compile"):
        return

    def compile(model=None, **kwargs):
        note("compiled code was run uncompiled")
        return (lambda function: function) if model is None else model
    _swap(swaps, torch, "compile", functools.wraps(torch.compile)(compile))
    torch.nn.Module.compile = lambda self, *args, **kwargs: note("compiled code was run uncompiled")


class _AfterImport(object):
    """A finder that lets the others find a module, and changes it once it has run."""
    def __init__(self, changes):
        self.changes = changes

    def find_spec(self, name, path=None, target=None):
        if name not in self.changes:
            return None
        change = self.changes.pop(name)
        spec = next((spec for spec in (finder.find_spec(name, path, target) for finder in sys.meta_path
                                       if hasattr(finder, "find_spec")) if spec is not None), None)
        if spec is not None and spec.loader is not None:
            loader, run = spec.loader, spec.loader.exec_module

            def exec_module(module):
                run(module)
                change(module)
            with contextlib.suppress(AttributeError):
                loader.exec_module = exec_module
        return spec


def _refuse_extensions(module):
    """torch.utils.cpp_extension: what has CUDA sources cannot be built or run."""
    def refuse_cuda(arguments):
        sources = arguments.get("sources") or ()
        sources = [sources] if isinstance(sources, str) else list(sources)
        if (arguments.get("with_cuda") or arguments.get("cuda_sources")
                or any(str(one).endswith((".cu", ".cuh")) for one in sources)):
            refuse("the CUDA extension %s" % arguments["name"])
    for name in ("load", "load_inline"):
        setattr(module, name, _changed(getattr(module, name), refuse_cuda))


def _refuse_triton(module):
    """triton.runtime.jit: a kernel is refused when it is launched."""
    def run(self, *args, **kwargs):
        refuse("the Triton kernel %s" % getattr(self, "__name__", getattr(self.fn, "__name__", "?")))
    module.JITFunction.run = run


def _ignore_dynamo(module):
    """torch._dynamo: what torch.compile was called before 2.0"""
    module.optimize = lambda *args, **kwargs: torch.compile()


def _extensions(swaps):
    changes = {"torch._dynamo": _ignore_dynamo, "torch.utils.cpp_extension": _refuse_extensions,
               "triton.runtime.jit": _refuse_triton}
    for name in [name for name in changes if name in sys.modules]:
        changes.pop(name)(sys.modules[name])
    sys.meta_path.insert(0, _AfterImport(changes))


def _lazy_modules(swaps):
    """What may be done to a parameter that has no shape yet is a list of functions."""
    kind = getattr(torch.nn.parameter, "UninitializedTensorMixin", None)
    if kind is not None:
        names = [getattr(one, "__name__", "") for one in kind._allowed_methods]
        kind._allowed_methods.extend(getattr(Tensor, name) for name in names if hasattr(Tensor, name))


PARTS = [_lazy_modules, _device_type, _legacy_types, _generators, _serialization, _other_processes,
         _data_parallel, _process_groups, _autocast, _optimizers, _compiled, _extensions]
