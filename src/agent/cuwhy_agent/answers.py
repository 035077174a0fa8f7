"""
What torch.cuda, torch.accelerator and their kin answer in mode `redirect`: one GPU (or as many as the
launcher started processes for), idle, of a common kind. Streams, events and contexts do nothing; what
cannot be had without a GPU is named and refused.
"""
import collections
import contextlib
import sys
import time
import types

import torch

from . import logical
from .logical import RealDevice, canonical, thread

MEMORY = 16 << 30  # bytes
NAME = "NVIDIA A100 (answered with the CPU)"
CAPABILITY = (8, 0)

_note = None  # set by answer_all
_noted = set()


def note(text):
    """Says a thing once."""
    if text not in _noted:
        _noted.add(text)
        _note(text)


def refuse(what):
    note("%s cannot run on a CPU" % what)
    raise RuntimeError("%s cannot run on a CPU (cuwhy answers CUDA with the CPU in this run)" % what)


class Stream(object):
    """A stream on which everything is done at once."""
    cuda_stream = stream_id = device_index = priority = 0
    device_type = 1  # c10::DeviceType::CUDA

    def __init__(self, device=None, priority=0, **kwargs):
        self.device = canonical("cuda" if device is None else device)

    def wait_event(self, event):
        pass

    def wait_stream(self, stream):
        pass

    def synchronize(self):
        pass

    def query(self):
        return True

    def is_capturing(self):
        return False

    def record_event(self, event=None):
        event = Event() if event is None else event
        event.record(self)
        return event

    @staticmethod
    def priority_range():
        return (0, -5)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass


class Event(object):
    cuda_event = event_id = 0

    def __init__(self, *args, **kwargs):
        self.device = logical.cuda()
        self.at = None  # seconds, when recorded

    def record(self, stream=None):
        self.at = time.perf_counter()

    def wait(self, stream=None):
        pass

    def query(self):
        return True

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        if self.at is None or end.at is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end.at - self.at) * 1000.0


class StreamContext(object):
    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        return self.stream

    def __exit__(self, *exc):
        pass


def stream(stream):
    return StreamContext(stream)


def _index(device):
    """The index that a device argument means; None for "leave the current one"."""
    if device is None or isinstance(device, int):
        return None if device is None or device < 0 else int(device)
    found = canonical(device)
    return found.index if found.type == "cuda" else None


class device(object):
    """Sets the current device for a while."""

    def __init__(self, device):
        self.idx = _index(device)
        self.prev_idx = -1

    def __enter__(self):
        self.prev_idx = thread.index
        set_device(self.idx)
        return self

    def __exit__(self, *exc):
        thread.index = self.prev_idx
        return False


class device_of(device):
    def __init__(self, obj):
        device.__init__(self, obj.get_device() if obj.is_cuda else -1)


def set_device(device):
    index = _index(device)
    if index is not None:
        thread.index = index


def exchange_device(index):
    old = thread.index
    set_device(index)
    return old


class _Unsupported(object):
    """Stands for a class that needs a GPU."""
    def __init__(self, *args, **kwargs):
        refuse("torch.cuda.%s" % type(self).__name__)


class Runtime(object):
    """torch.cuda.cudart()"""
    class cudaError(object):
        success = 0

    def cudaMemGetInfo(self, device=None):
        return (MEMORY, MEMORY)

    def __getattr__(self, name):
        if not name.startswith("cuda"):
            raise AttributeError(name)
        return lambda *args: 0


def properties(device=None):
    return types.SimpleNamespace(
        name=NAME, major=CAPABILITY[0], minor=CAPABILITY[1], total_memory=MEMORY, multi_processor_count=108,
        is_integrated=0, is_multi_gpu_board=0, max_threads_per_multi_processor=2048, warp_size=32,
        regs_per_multiprocessor=65536, shared_memory_per_block=49152, shared_memory_per_block_optin=166912,
        shared_memory_per_multiprocessor=167936, L2_cache_size=40 << 20, max_threads_per_block=1024,
        gcnArchName="", uuid="", pci_bus_id=0, pci_device_id=0, pci_domain_id=0)


def constant(value):
    return lambda *args, **kwargs: value


def _seeds(count):
    return [torch.zeros(16, dtype=torch.uint8) for _ in range(count)]


def _no_memory_used(*args, **kwargs):
    """Every statistic is 0, whatever it is called."""
    return collections.defaultdict(int)


def _nothing_nested(*args, **kwargs):
    return collections.defaultdict(_nothing_nested)


NOTHING = """
    init _lazy_init synchronize empty_cache ipc_collect manual_seed manual_seed_all seed seed_all
    set_rng_state set_rng_state_all set_stream _set_stream_by_id set_sync_debug_mode check_error
    reset_max_memory_allocated reset_max_memory_cached reset_peak_memory_stats
    reset_accumulated_memory_stats reset_peak_host_memory_stats reset_accumulated_host_memory_stats
    set_per_process_memory_fraction caching_allocator_delete caching_allocator_enable _sleep
    _record_memory_history _dump_snapshot _set_rng_state_offset _lazy_call empty_host_cache
""".split()
ZERO = """
    memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_cached
    max_memory_cached device_memory_used utilization memory_usage temperature power_draw clock_rate
    get_sync_debug_mode initial_seed _get_rng_state_offset
""".split()
ANSWERS = {
    "is_available": constant(True), "is_initialized": constant(True),
    "is_bf16_supported": constant(True), "is_tf32_supported": constant(True),
    "_is_in_bad_fork": constant(False), "is_current_stream_capturing": constant(False),
    "can_device_access_peer": constant(False), "device_count": logical.device_count,
    "_device_count_nvml": logical.device_count, "current_device": lambda: thread.index,
    "_get_device": lambda spec: canonical("cuda" if spec is None else spec), "set_device": set_device,
    "_exchange_device": exchange_device, "_maybe_exchange_device": exchange_device,
    "get_device_name": constant(NAME), "get_device_capability": constant(CAPABILITY),
    "get_device_properties": properties, "get_arch_list": lambda: ["sm_80"],
    "get_gencode_flags": constant(""),
    "mem_get_info": constant((MEMORY, MEMORY)), "memory_stats": _no_memory_used,
    "memory_stats_as_nested_dict": _nothing_nested, "host_memory_stats": _no_memory_used,
    "host_memory_stats_as_nested_dict": _nothing_nested, "memory_snapshot": lambda *args, **kwargs: [],
    "_snapshot": lambda *args, **kwargs: {"segments": [], "device_traces": []},
    "memory_summary": constant("no GPU memory: answered with the CPU"), "list_gpu_processes": constant(""),
    "get_allocator_backend": constant("native"), "get_per_process_memory_fraction": constant(1.0),
    "caching_allocator_disabled": contextlib.nullcontext,
    "current_stream": Stream, "default_stream": Stream, "stream": stream,
    "get_stream_from_external": lambda pointer, device=None: Stream(device), "cudart": Runtime,
    "get_rng_state": lambda *args: _seeds(1)[0], "get_rng_state_all": lambda: _seeds(logical.device_count()),
    "current_blas_handle": constant(0), "current_solver_handle": constant(0),
    "_transform_uuid_to_ordinals": constant([]), "_nvml_based_avail": constant(False),
    "Stream": Stream, "ExternalStream": Stream, "Event": Event, "StreamContext": StreamContext,
    "device": device, "_DeviceGuard": device, "device_of": device_of,
}
ANSWERS.update((name, constant(None)) for name in NOTHING)
ANSWERS.update((name, constant(0)) for name in ZERO)
KEPT = frozenset(["cast", "lru_cache", "classproperty"])  # helpers that torch.cuda imports, not its own
CLASSES_REFUSED = ("CUDAGraph", "graph", "CUDAPluggableAllocator", "MemPool", "GreenContext")

ACCELERATOR = {
    "is_available": constant(True), "device_count": logical.device_count,
    "current_accelerator": lambda *args, **kwargs: RealDevice("cuda"),
    "current_device_index": lambda: thread.index, "current_device_idx": lambda: thread.index,
    "set_device_index": set_device, "set_device_idx": set_device, "current_stream": Stream,
    "set_stream": constant(None), "synchronize": constant(None), "device_index": device,
    "empty_cache": constant(None), "get_memory_info": constant((MEMORY, MEMORY)),
    "memory_stats": _no_memory_used, "get_device_capability": lambda *args: {},
    "memory_allocated": constant(0), "max_memory_allocated": constant(0), "memory_reserved": constant(0),
    "max_memory_reserved": constant(0), "reset_peak_memory_stats": constant(None),
    "reset_accumulated_memory_stats": constant(None), "empty_host_cache": constant(None),
}


class Range(contextlib.ContextDecorator):
    """torch.cuda.nvtx.range, torch.cuda.profiler.profile"""
    def __init__(self, *args, **kwargs):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass


PLACES = [  # module, its answers
    ("torch.cuda.nvtx", {"range_push": constant(0), "range_pop": constant(0), "range_start": constant(0),
                         "range_end": constant(None), "mark": constant(None), "range": Range}),
    ("torch.cuda.profiler", {"init": constant(None), "start": constant(None), "stop": constant(None),
                             "profile": Range}),
    ("torch.cuda.nccl", {"version": constant((2, 18, 1)), "is_available": constant(True)}),
    ("torch.cuda.jiterator", {"_create_jit_fn": lambda *args, **kwargs: refuse("torch.cuda.jiterator"),
                              "_create_multi_output_jit_fn":
                                  lambda *args, **kwargs: refuse("torch.cuda.jiterator")}),
    ("torch.accelerator", ACCELERATOR),
    ("torch.backends.cuda", {"is_built": constant(True)}),
    ("torch.backends.cudnn", {"is_available": constant(True), "version": constant(90100),
                              "is_acceptable": constant(False)}),
]


def _swap(swaps, owner, name, new):
    old = getattr(owner, name, None)
    if old is not None:
        if isinstance(new, types.FunctionType) and new.__name__ == "<lambda>":
            new = types.FunctionType(new.__code__, new.__globals__, name, new.__defaults__, new.__closure__)
        swaps[id(old)] = (old, new)
    setattr(owner, name, new)


def _refuser(name):
    return lambda *args, **kwargs: refuse("torch.cuda." + name)


def answer_all(note_function, swaps):
    global _note
    _note = note_function
    cuda = torch.cuda
    own = [sys.modules[name] for name in ("torch.cuda", "torch.cuda.memory", "torch.cuda.random",
                                          "torch.cuda.streams", "torch.cuda._utils") if name in sys.modules]
    for name, answer in ANSWERS.items():
        for module in own:
            if name in vars(module):
                _swap(swaps, module, name, answer)
    for name in dir(cuda):
        value = getattr(cuda, name)
        if isinstance(value, types.FunctionType) and not name.startswith("_") and name not in ANSWERS:
            if value.__module__.startswith("torch.cuda") and name not in KEPT:
                _swap(swaps, cuda, name, _refuser(name))
    for name in CLASSES_REFUSED:
        if hasattr(cuda, name):
            _swap(swaps, cuda, name, type(name, (_Unsupported,), {"__module__": "torch.cuda"}))
    for place, answers in PLACES:
        module = sys.modules.get(place)
        for name, answer in answers.items() if module is not None else ():
            if hasattr(module, name):
                _swap(swaps, module, name, answer)
    if hasattr(torch._C, "_get_accelerator"):
        torch._C._get_accelerator = lambda *args: RealDevice("cuda")
    for name, new in (("Stream", Stream), ("Event", Event)):
        if hasattr(torch, name):
            _swap(swaps, torch, name, new)
    if not hasattr(torch._C, "_cuda_getCurrentRawStream"):  # imported by name in torch._dynamo
        torch._C._cuda_getCurrentRawStream = constant(0)
    if torch.version.cuda is None:
        torch.version.cuda = "12.1"
    if "has_cuda" in vars(torch):
        torch.has_cuda = True
