"""
The device that each tensor would be on if there were a GPU (mode `redirect`).

Every tensor is on the CPU; what is remembered is the device of its storage, since that is what has a
device in CUDA too: views, detached tensors, `.data`, saved tensors and parameters then follow by
themselves, and nothing of ours is attached to a tensor. The key is the address of the StorageImpl. A
weak reference is held on it, which frees its memory of data but keeps the address from being given
to another storage.

A storage that nothing is known of (made in C++ without passing one of the wrapped entry points, such
as a gradient inside backward) is neither on the CPU nor on CUDA: its device is None, and it never
counts in the search for mismatches.
"""
import contextlib
import os
import threading

import torch

RealDevice = torch.device  # before redirect puts its own in place
CPU = RealDevice("cpu")
SWEEP_FIRST = 4096  # storages remembered before the dead ones are looked for

Tensor = torch.Tensor
base = getattr(torch._C, "TensorBase", None) or torch._C._TensorBase
unguarded = torch._C.DisableTorchFunction  # modes and subclasses of the user do not see our own questions
_storage_of = getattr(base, "untyped_storage", None) or base._storage  # 1.13 has the second
_real_device = base.device.__get__
_is_cpu = base.is_cpu.__get__

_cuda = {}  # index -> the one object for that logical device, so that `is` compares them
_devices = {}  # address of a StorageImpl -> logical device
_pinned = set()  # addresses in _devices
_sweep_at = SWEEP_FIRST
_sweeping = threading.Lock()


class _Thread(threading.local):
    index = 0  # the current CUDA device
    inside = None  # the device of the operation that is running
    backward = None  # the device of the tensors that backward runs for
    quiet = False  # mismatches are not looked for
    honest = False  # storages tell that they are on the CPU
    autocast = 0  # depth of autocast regions for CUDA


thread = _Thread()


@contextlib.contextmanager
def set_for_now(name, value):
    """Sets one field of `thread` for the length of a with block."""
    old = getattr(thread, name)
    setattr(thread, name, value)
    try:
        yield
    finally:
        setattr(thread, name, old)


def device_count():
    """One GPU, or as many as the launcher started processes for on this machine."""
    try:
        return max(1, int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    except ValueError:
        return 1


def cuda(index=None):
    """The logical device cuda:index; the thread's current one without an index."""
    index = thread.index if index is None else index
    device = _cuda.get(index)
    if device is None:
        device = _cuda.setdefault(index, RealDevice("cuda", index))
    return device


def canonical(spec):
    """The logical device that an argument names: a number, a text or a torch.device. None stays None."""
    if spec is None:
        return None
    if isinstance(spec, int):
        return cuda(int(spec) if spec >= 0 else None)
    device = spec if isinstance(spec, RealDevice) else RealDevice(spec)
    if device.type == "cuda":
        return cuda(device.index)
    return CPU if device.type == "cpu" else device


def real(device):
    """Where a tensor of this logical device is kept."""
    return CPU if device is not None and device.type == "cuda" else device


def _parts(tensor):
    """The plain tensors that hold the elements of one without a storage: sparse, or wrapped by torch.func."""
    layout = tensor.layout
    if layout is torch.sparse_coo:
        return [base._values(tensor), base._indices(tensor)]
    if layout in (torch.sparse_csr, getattr(torch, "sparse_bsr", None)):
        return [base.values(tensor), base.crow_indices(tensor), base.col_indices(tensor)]
    if layout in (getattr(torch, "sparse_csc", None), getattr(torch, "sparse_bsc", None)):
        return [base.values(tensor), base.ccol_indices(tensor), base.row_indices(tensor)]
    functorch = getattr(torch._C, "_functorch", None)
    if hasattr(functorch, "is_functorch_wrapped_tensor") and functorch.is_functorch_wrapped_tensor(tensor):
        return [functorch.get_unwrapped(tensor)]
    return []


def _storages(tensor):
    """The storages of a tensor; call with `unguarded`. Empty when it has none that can be seen."""
    try:
        return [_storage_of(tensor)]
    except (RuntimeError, NotImplementedError):
        return [storage for part in _parts(tensor) for storage in _storages(part)]


def look(tensor):
    """The logical device or None; call with `unguarded`."""
    try:
        return _devices.get(_storage_of(tensor)._cdata)
    except (RuntimeError, NotImplementedError):
        storages = _storages(tensor)
        return _devices.get(storages[0]._cdata) if storages else None


def of(tensor):
    """The logical device, or None when it is not known."""
    with unguarded():
        return look(tensor)


def mark_storage(storage, device):
    """Says where a storage is; the first word holds."""
    address = storage._cdata
    if address not in _devices:
        storage._weak_ref()
        _devices[address] = device
        if len(_devices) > _sweep_at:
            _sweep()


def mark(tensor, device):
    """Says where a new tensor is; does nothing when its storage is known. Call with `unguarded`."""
    if device is not None and _is_cpu(tensor):
        try:
            mark_storage(_storage_of(tensor), device)
        except (RuntimeError, NotImplementedError):
            for storage in _storages(tensor):
                mark_storage(storage, device)


def of_storage(storage):
    return _devices.get(storage._cdata)


def pin(tensor):
    """Remembers that a tensor on the CPU is in pinned memory. Call with `unguarded`."""
    mark(tensor, CPU)
    _pinned.update(storage._cdata for storage in _storages(tensor))


def is_pinned(tensor):
    with unguarded():
        return any(storage._cdata in _pinned for storage in _storages(tensor))


def _sweep():
    """Forgets the storages that are gone."""
    global _sweep_at
    if not _sweeping.acquire(False):
        return
    try:
        expired, free = torch.UntypedStorage._expired, torch.UntypedStorage._free_weak_ref
        for address in [one for one in list(_devices) if expired(one)]:
            del _devices[address]
            _pinned.discard(address)
            free(address)
        _sweep_at = max(SWEEP_FIRST, 2 * len(_devices))
    finally:
        _sweeping.release()


def answer(tensor):
    """What tensor.device says. An unknown tensor that is asked inside an operation (by a hook on what is
    saved) or inside backward is taken to be on the device that these run for, and stays there: the
    program may have built on the answer."""
    with unguarded():
        device = look(tensor)
        if device is None:
            device = _real_device(tensor)
            if device.type == "cuda":
                return canonical(device)
            running = thread.inside or thread.backward
            if device.type == "cpu" and running is not None:
                device = running
                mark(tensor, device)
    return device


def device_of(tensor):
    """The name of the logical device: "cuda:0", "cpu"."""
    return str(answer(tensor))
