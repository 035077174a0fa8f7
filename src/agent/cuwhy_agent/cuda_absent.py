"""
Notices that the program asked for CUDA and was truthfully told that there is none.

The answer is never changed here; once it has been seen, the functions are put back.
"""
import sys

import torch

from cuwhy_agent import frames, look, wire

NAMES = ("is_available", "device_count")

_originals = {}


def install():
    for name in NAMES:
        _originals[name] = getattr(torch.cuda, name)
        setattr(torch.cuda, name, look.guard(_originals[name], asked, None, -1))


def asked(args, kwargs):
    frame = sys._getframe(1)
    while frame is not None and frames.kind(frame.f_code.co_filename) == "agent":
        frame = frame.f_back
    if frame is None or frames.kind(frame.f_code.co_filename) == "torch":
        return
    for name, original in _originals.items():
        setattr(torch.cuda, name, original)
    if not _originals["is_available"]():
        wire.say("cuda_absent")
