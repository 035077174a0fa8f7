"""
cuwhy's agent: in the user's process, it looks at index-like operands before PyTorch consumes them.

Loaded by sitecustomize.py after torch; docs/agent.md tells how it talks to cuwhy.
"""
import os
import platform
import sys


def rank():
    """(rank, world size) as torchrun and most launchers say them."""
    try:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError):
        return None, None


def hello():
    import torch
    mine, ranks = rank()
    return {"pid": os.getpid(), "python": platform.python_version(), "torch": str(torch.__version__),
            "cuda": torch.version.cuda, "rank": mine, "ranks": ranks}


def attach():
    """Called once torch has been imported. What fails here leaves the program as it was."""
    import torch
    if not hasattr(torch, "Tensor") or "torch.nn.functional" not in sys.modules:
        return  # something else of this name
    from cuwhy_agent import wire
    wire.open_with(hello)
    if not wire.connect():
        return
    for step in (set_up_redirection, set_up_hooks, set_up_loaders, set_up_the_end,
                 set_up_cuda_absent):
        try:
            step()
        except Exception as error:
            name = step.__name__.replace("_", " ")
            wire.note("the agent could not %s: %s: %s" % (name, type(error).__name__, error))


def mode():
    return os.environ.get("CUWHY_MODE", "observe")


def set_up_redirection():
    """Every CUDA device answered with the CPU."""
    from cuwhy_agent import findings, hold, wire
    if mode() != "observe":
        findings.hold_with(hold.at_finding)
    if mode() == "redirect":
        from cuwhy_agent import redirect
        redirect.install(wire.say, findings.finding)
        findings.device_of = redirect.device_of


def set_up_hooks():
    from cuwhy_agent import hooks
    hooks.install()


def set_up_loaders():
    from cuwhy_agent import loaders
    loaders.install()


def set_up_the_end():
    from cuwhy_agent import postmortem
    postmortem.install()


def set_up_cuda_absent():
    if mode() == "observe":
        from cuwhy_agent import cuda_absent
        cuda_absent.install()
