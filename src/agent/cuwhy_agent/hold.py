"""
Holding the process after a fault, and answering cuwhy's commands meanwhile.

CUDA is never touched here: after a device-side assert every call to it fails or hangs.
"""
import os
import signal
import sys
import threading
import time

from cuwhy_agent import findings, hooks, look, scan, wire

SCAN_SECONDS = 30.0  # when the command names no limit

_held = False


class Released(BaseException):
    pass


def seconds():
    try:
        return float(os.environ.get("CUWHY_HOLD", "0"))
    except ValueError:
        return 0.0


def may_hold():
    """Never in an interactive session, in a DataLoader's worker, or twice."""
    if _held or seconds() <= 0 or hasattr(sys, "ps1") or "IPython" in sys.modules and in_ipython():
        return False
    return not in_worker()


def in_ipython():
    ask = getattr(sys.modules["IPython"], "get_ipython", None)
    return ask is not None and ask() is not None


def in_worker():
    data = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


def tell_checked():
    for fields in hooks.checked():
        wire.say("checked", pid=os.getpid(), **fields)


def hold(reason):
    """Says `held` and serves commands until it is released. True if the process was held."""
    global _held
    if not may_hold() or not wire.connect():
        return False
    _held = True
    flush()
    restore = on_terminate()
    try:
        with look.hushed():
            wire.say("held", pid=os.getpid(), reason=reason)
            serve(time.monotonic() + seconds())
    except (Released, KeyboardInterrupt):
        pass
    finally:
        restore()
    return True


def on_terminate():
    """SIGTERM releases. Returns what puts the program's own handler back."""
    if threading.current_thread() is not threading.main_thread():
        return lambda: None

    def released(number, frame):
        raise Released()

    old = signal.signal(signal.SIGTERM, released)
    return lambda: signal.signal(signal.SIGTERM, old if old is not None else signal.SIG_DFL)


def serve(end):
    while time.monotonic() < end and wire.connected():
        command = wire.listen(end - time.monotonic())
        if command is None or command.get("do") == "release":
            return
        if command.get("do") == "scan":
            limit = command.get("limit")
            limit = float(limit) if isinstance(limit, (int, float)) else SCAN_SECONDS
            wire.say("scan", **answer(limit))


def answer(limit):
    followed = [one for one in findings.made if one.operand is not None]
    try:
        return scan.scan((followed or findings.made or [None])[0], limit)
    except Exception as error:
        return {"problem": "the scan failed: %s: %s" % (type(error).__name__, error)}


def at_finding():
    """In a run on another device than the user's, nothing after the first finding has a meaning."""
    if in_worker():
        return
    tell_checked()
    if hold("finding"):
        flush()
        os._exit(0)


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
