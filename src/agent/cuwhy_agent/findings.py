"""
From a fault to what cuwhy is told of it, once for each operation and place.

A finding keeps the values of its operand in the process, so that a scan can prove where they came
from.
"""
import os

import torch

from cuwhy_agent import frames, loaders, look, wire

FINDINGS_MAX = 8
OPERAND_MAX = 1 << 22  # elements kept of an operand

made = []        # Finding, sent
_pending = []    # (error's id, type and text, Finding): told if that error ends the program
_weak = []       # Finding, told if the program ends in an error that nothing else explains
_told = set()    # (op, file, line)
_hold = None     # called before the call that a check found a fault in, in a run that ends there
device_of = None  # of the redirection: the device a tensor would be on


class Finding:
    def __init__(self, fields, operand, fault, batches):
        self.fields = fields
        self.operand = operand    # its values, flat, or None
        self.fault = fault
        self.batches = batches    # see loaders.recent()
        self.parts = {batch.source: batch.source.parts() for batch, _ in batches}  # what a scan walks over
        self.computed = fault.tensor is not None and getattr(fault.tensor, "requires_grad", False)


def forked():
    """A child does not tell its parent's findings."""
    del made[:], _pending[:], _weak[:]
    _told.clear()


def hold_with(hold):
    global _hold
    _hold = hold


def report(hook, fault, args, kwargs):
    """A check before a call found a fault. Returns the Finding if it is one only should the call raise."""
    finding = build(hook.op, fault, frames.here())
    if finding is None:
        return None
    if fault.weak:
        _weak.append(finding)
    elif not fault.silent and on_cpu(args) and on_cpu((kwargs or {}).values()):
        _told.discard(key_of(finding))
        return finding
    else:
        send(finding)
        hold_now()
    return None


def on_cpu(values):
    """No operand is on a GPU: there the fault is an error that the program may catch."""
    return all(on_cpu(one) if isinstance(one, (tuple, list)) else
               not isinstance(one, torch.Tensor) or device(one) == "cpu" for one in values)


def keep(hook, fault, error):
    """A call raised: its fault is told only if nobody catches the error."""
    finding = build(hook.op, fault, frames.here())
    if finding is not None:
        _told.discard(key_of(finding))
        pend(finding, error)


def pend(finding, error):
    _pending.append((id(error), type(error), str(error), finding))
    del _pending[:-FINDINGS_MAX]


def finding(cause, op, role, tensor, detail=None, expect=None, silent=False, **more):
    """The same for faults that other parts of the agent find: the redirection's device mismatches."""
    from cuwhy_agent.checks import Fault
    fault = Fault(cause, role, tensor, more.pop("position", None), detail=detail, expect=expect,
                  measured=False, silent=silent, facts=more)
    with look.hushed():
        made_now = build(op, fault, frames.here())
        if made_now is not None:
            send(made_now)
            hold_now()


def send(one):
    if len(made) >= FINDINGS_MAX:
        return
    made.append(one)
    wire.say("finding", **one.fields)


def hold_now():
    if _hold is not None:
        _hold()


def explain(error):
    """Sends what is known of an error that ends the program: what was kept when it was raised."""
    while error is not None:
        alike = [(address != id(error), one) for address, kind, text, one in reversed(_pending)
                 if kind is type(error) and text == str(error) and key_of(one) not in _told]
        if alike:
            one = min(alike, key=lambda pair: pair[0])[1]  # that very error's; else the last one's like it
            _told.add(key_of(one))
            send(one)
            return True
        error = error.__cause__ or error.__context__
    return False


def tell_weak():
    if not made and _weak:
        send(_weak[-1])


def add(op, fault, stack):
    """A fault seen in a traceback."""
    one = build(op, fault, stack)
    if one is not None:
        send(one)


def key_of(one):
    where = one.fields["place"] or {}
    return one.fields["op"], where.get("file"), where.get("line")


def build(op, fault, stack):
    """The Finding of a fault; None when this was told before."""
    mine = frames.users(stack)
    where = frames.place(*mine[-1]) if mine else None
    key = (op, where and where["file"], where and where["line"])
    if key in _told or len(made) >= FINDINGS_MAX:
        return None
    _told.add(key)
    tensor = fault.tensor if isinstance(fault.tensor, torch.Tensor) else None
    facts = dict(fault.facts)
    if fault.measured and tensor is not None:
        facts = look.details(tensor, fault.low, fault.high, fault.ignore)
    bounded = fault.low is None or fault.high is None or fault.low <= fault.high
    told = {"role": fault.role, "min": facts.pop("min", None), "max": facts.pop("max", None)}
    told["name"] = frames.argument(stack, tensor, fault.position, fault.keyword, op)
    if tensor is not None:
        dtype = str(tensor.dtype).replace("torch.", "")
        told.update(shape=list(tensor.shape), dtype=dtype, device=device(tensor))
    fields = {
        "pid": os.getpid(), "cause": fault.cause, "op": op, "tensor": told,
        "low": fault.low if bounded else None, "high": fault.high if bounded else None,
        "place": where, "stack": frames.places(stack), "module": frames.module_path(stack),
        "detail": fault.detail, "expect": fault.expect, "silent": fault.silent,
        "seen": tensor is not None,  # what only an error's text says was not looked at
    }
    fields.update(facts)
    return Finding(fields, operand_of(fault, tensor), fault, loaders.recent(stack))


def device(tensor):
    try:
        return str(device_of(tensor)) if device_of else str(tensor.device)
    except Exception:
        return str(tensor.device)


def operand_of(fault, tensor):
    """The operand's values, flat and our own; only of one that can be followed to its data."""
    if tensor is None or not fault.measured or tensor.numel() > OPERAND_MAX or not look.is_cpu(tensor):
        return None
    return tensor.detach().cpu().reshape(-1).clone()  # on the CPU under redirection, too
