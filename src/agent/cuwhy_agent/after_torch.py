"""
Loads the agent once torch has been imported; run by sitecustomize.py when the program imports torch.

Nothing of the agent's is ever on sys.path, and whatever fails here leaves torch's import as it was.
"""
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))


def find_torch(waiting, path, target):
    """torch's spec, as the finders other than `waiting` find it, with the agent behind it."""
    for finder in sys.meta_path:
        find = None if finder is waiting else getattr(finder, "find_spec", None)
        spec = find("torch", path, target) if find else None
        if spec is not None:
            load_behind(spec.loader, waiting)
            return spec
    return None


def load_behind(loader, waiting):
    run = getattr(loader, "exec_module", None)

    def exec_module(module):
        del loader.exec_module
        run(module)
        if waiting in sys.meta_path:
            sys.meta_path.remove(waiting)
        try:
            load_agent()
        except Exception:
            pass  # the program goes on without the agent

    try:
        if run is not None:
            loader.exec_module = exec_module
    except AttributeError:
        pass  # a loader that takes no attribute: no agent


def load_agent():
    from importlib import util  # torch has loaded it already
    spec = util.spec_from_file_location("cuwhy_agent", os.path.join(FOLDER, "__init__.py"),
                                        submodule_search_locations=[FOLDER])
    agent = util.module_from_spec(spec)
    sys.modules["cuwhy_agent"] = agent
    spec.loader.exec_module(agent)
    agent.attach()
