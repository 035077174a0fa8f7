"""
What happens when the program ends in an error, or ends after a fault that raised nothing.

The program's own hook comes first and prints what it always printed; then cuwhy is told, and the
process is held so that its data can be searched. After that everything ends as it would have ended.
"""
import atexit
import os
import re
import sys
import threading
from multiprocessing import parent_process, util

from torch._utils import ExceptionWrapper

from cuwhy_agent import explain, findings, frames, hold, look, wire

# An error that may be about what this tool is for; others are told of, but not held.
OURS = re.compile(r"cuda|cublas|cudnn|nccl|device|shape|size|dimension|index|indices|target|dtype|"
                  r"scalar type|batch|out of range|out of bounds|probabilit|between 0 and 1|equal size", re.I)
# An error that can come of the mean over an empty batch.
NOT_A_NUMBER = re.compile(r"\bnan\b|not a number|finite|\bempty\b|zero elements", re.I)
NOT_OURS = KeyError, AttributeError, OSError, ImportError
TEXT_MAX = 4000  # characters of an error's message

_said_checked = False


def looks_ours(error):
    while error is not None:
        if OURS.search(str(error)) and not isinstance(error, NOT_OURS):
            return True
        error = error.__cause__ or error.__context__
    return False


def uncaught(error, stack):
    """An error has reached the top of a thread, and its traceback is printed."""
    with look.hushed():
        hold.flush()
        wire.say("raised", pid=os.getpid(), type=type_name(error), text=str(error)[:TEXT_MAX],
                 frames=frames.places(stack))
        if not explain.explain(error, stack):
            if NOT_A_NUMBER.search(str(error)):
                findings.tell_weak()
            elif not looks_ours(error):
                return
        tell_checked()
        hold.hold("exception")


def type_name(error):
    kind = type(error)
    return kind.__name__ if kind.__module__ == "builtins" else "%s.%s" % (kind.__module__, kind.__name__)


def tell_checked():
    global _said_checked
    if not _said_checked:
        _said_checked = True
        hold.tell_checked()


def without_agent(trace):
    """The traceback as it would be without the agent's frames in it."""
    while trace is not None and frames.kind(trace.tb_frame.f_code.co_filename) == "agent" and trace.tb_next:
        trace = trace.tb_next
    at = trace
    while at is not None and at.tb_next is not None:
        inner = at.tb_next
        if frames.kind(inner.tb_frame.f_code.co_filename) == "agent":
            at.tb_next = inner.tb_next
        else:
            at = inner
    return trace


def install():
    own_hook, own_thread_hook = sys.excepthook, threading.excepthook

    def excepthook(kind, error, trace):
        trace = clean(error, trace)
        own_hook(kind, error, trace)
        if isinstance(error, Exception):
            safely(uncaught, error, frames.of_traceback(trace))

    def thread_hook(args):
        trace = clean(args.exc_value, args.exc_traceback)
        own_thread_hook(args)
        if isinstance(args.exc_value, Exception):
            safely(uncaught, args.exc_value, frames.of_traceback(trace))

    ExceptionWrapper.__init__ = look.method(ExceptionWrapper.__init__, leaves_worker, None, -1)
    sys.excepthook = excepthook
    threading.excepthook = thread_hook
    atexit.register(safely, at_exit)
    after_fork()


def leaves_worker(args, kwargs):
    """What ends the work of a DataLoader's worker is raised again in the process that it works for."""
    if hold.in_worker():
        findings.explain(sys.exc_info()[1])


def clean(error, trace):
    try:
        trace = without_agent(trace)
        if error is not None:
            error.__traceback__ = trace
    except Exception:
        pass
    return trace


def safely(function, *args):
    try:
        function(*args)
    except Exception:
        pass


def at_exit():
    """The second chance: a fault that raised nothing, or whose error went another way."""
    error = getattr(sys, "last_value", None)  # the program's own hook has printed it
    if isinstance(error, Exception):
        findings.explain(error)
    if wire.connected() or findings.made:
        tell_checked()
    if findings.made:
        hold.hold("exit")


def after_fork():
    """A child tells its own story, if it has one; multiprocessing ends it without atexit."""
    os.register_at_fork(after_in_child=in_child)
    util.register_after_fork(wire, lambda _: watch_child())
    watch_child()


def watch_child():
    """Forking clears the finalizers, so that this is done again then."""
    util.Finalize(None, safely, args=(child_ends,), exitpriority=-100)


def in_child():
    global _said_checked
    wire.forked()
    findings.forked()
    _said_checked = False


def child_ends():
    """multiprocessing runs this while the error that ends the child is on its way."""
    if parent_process() is None:
        return  # not a child: at_exit has its turn
    error = sys.exc_info()[1]
    if isinstance(error, SystemExit):
        error = error.__context__
    if isinstance(error, Exception) and not hold.in_worker():
        uncaught(error, frames.of_traceback(error.__traceback__))
    elif findings.made:
        at_exit()
