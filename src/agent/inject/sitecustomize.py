"""
Runs at the start of every Python that inherits PYTHONPATH from cuwhy: waits for torch.

It is short because it may be compiled at each start, and imports only what every Python has loaded
already. What happens once torch is wanted is in ../cuwhy_agent/after_torch.py.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


class AfterTorch:
    """A finder that steps aside for the others, and has the agent loaded behind torch."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "torch":
            file = os.path.join(os.path.dirname(HERE), "cuwhy_agent", "after_torch.py")
            with open(file) as source:
                names = {"__file__": file}
                exec(compile(source.read(), file, "exec"), names)
            return names["find_torch"](cls, path, target)


def watch():
    if os.environ.get("CUWHY_SOCKET") and "torch" not in sys.modules:
        sys.meta_path.insert(0, AfterTorch)


if __name__ == "sitecustomize":
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != HERE]
    watch()
    # The user's own runs as if this file were not there; having none is the error that site.py expects.
    del sys.modules["sitecustomize"]
    import sitecustomize  # noqa: F401
