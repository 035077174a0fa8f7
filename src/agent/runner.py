"""
Runs a program in a Python that ignores PYTHONPATH (-I, -E) or site (-S), with the agent watching.

    python -I runner.py [SCRIPT | -m MODULE | -c CODE] [ARG...]

The program sees the sys.argv, sys.path[0] and __main__ that it would have had without this file.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def watch():
    """What sitecustomize.py does, from its own file, without putting its folder on sys.path."""
    path = os.path.join(HERE, "inject", "sitecustomize.py")
    names = {"__name__": "cuwhy_inject", "__file__": path}
    with open(path) as source:
        exec(compile(source.read(), path, "exec"), names)
    names["watch"]()


def set_path(first):
    """-I leaves the program's own folder off sys.path; then nothing was put there to replace."""
    if sys.path and os.path.abspath(sys.path[0] or ".") == HERE:
        del sys.path[0]
    isolated = sys.flags.isolated or getattr(sys.flags, "safe_path", False)
    if not isolated:
        sys.path.insert(0, first)


def fresh_main(**names):
    main = type(sys)("__main__")
    main.__dict__.update(names, __builtins__=__builtins__)
    sys.modules["__main__"] = main
    return main.__dict__


def run_script(path):
    import io
    set_path(os.path.dirname(os.path.realpath(path)))
    if os.path.isdir(path) or not path.endswith(".py") and is_archive(path):
        import runpy
        return runpy.run_path(path, run_name="__main__")
    with io.open_code(path) as source:
        code = compile(source.read(), path, "exec")
    exec(code, fresh_main(__file__=path, __cached__=None, __doc__=None))


def is_archive(path):
    import zipfile
    return zipfile.is_zipfile(path)


def run_module(name):
    import runpy
    set_path(os.getcwd())
    runpy._run_module_as_main(name, alter_argv=True)


def run_code(text):
    set_path("")
    exec(compile(text, "<string>", "exec"), fresh_main(__doc__=None))


def main(args):
    if not args:
        sys.exit("usage: runner.py [SCRIPT | -m MODULE | -c CODE] [ARG...]")
    watch()
    if args[0] in ("-m", "-c") and len(args) > 1:
        sys.argv[:] = [args[0]] + args[2:]
        run_module(args[1]) if args[0] == "-m" else run_code(args[1])
    else:
        sys.argv[:] = args
        run_script(args[0])


if __name__ == "__main__":
    main(sys.argv[1:])
