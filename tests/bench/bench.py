"""make bench: figures as ratios within one run, a line each: bench NAME VALUE GOAL ok|short. BENCH=pattern: some."""
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

CUWHY, MAKE_LOG, PATTERN = os.environ["CUWHY"], os.environ["MAKE_LOG"], os.environ.get("BENCH", "")
LINES = 3000000


def tell(name, value, goal):
    good = value <= goal if name.endswith("_max") else value >= goal
    print("bench %s %.2f %g %s" % (name, value, goal, "ok" if good else "short"), flush=True)


def info(text):
    print("bench-info " + text, flush=True)


def seconds(argv, **more):
    start = time.perf_counter()
    subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **more)
    return time.perf_counter() - start


def explain():
    """A log of 500 MB with three million assertion lines, against wc -l, alternating."""
    with tempfile.TemporaryDirectory() as box:
        log = os.path.join(box, "log")
        with open(log, "wb") as out:
            subprocess.run([MAKE_LOG, str(LINES)], stdout=out, check=True)
        info("log of %d MB" % (os.path.getsize(log) >> 20))
        ratios = []
        for _ in range(6):
            floor = seconds(["wc", "-l", log])
            ratios.append(seconds([CUWHY, "explain", "--json", "-", log]) / floor)
        info("explain over wc -l, each pair: " + " ".join("%.2f" % r for r in ratios))
        tell("explain_over_wc_max", statistics.median(ratios[1:]), 2.5)
        pid = os.posix_spawn(CUWHY, [CUWHY, "explain", "--json", "/dev/null", log], os.environ,
                             file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
        usage = os.wait4(pid, 0)[2]
        tell("explain_memory_mb_max", usage.ru_maxrss / 1024, 50)


def passthrough():
    """What a program that does not fail loses: its whole run under cuwhy over the run without."""
    for name, argv in (("short", [sys.executable, "-c", "pass"]),
                       ("busy", [sys.executable, "-c", "sum(i * i for i in range(6000000))"])):
        pairs = [(seconds(argv), seconds([CUWHY] + argv)) for _ in range(9)]
        ratio = statistics.median(under / alone for alone, under in pairs)
        if name == "busy":
            tell("run_over_plain_max", ratio, 1.1)
        else:
            info("an empty Python: %.2f times, %.0f ms more" % (
                ratio, 1000 * statistics.median(under - alone for alone, under in pairs)))


def torch_script():
    """The same for a small training script with real PyTorch, agent and checks included."""
    code = ("import torch\nfrom torch import nn\ntorch.manual_seed(0)\nm = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), "
            "nn.Linear(128, 10))\no = torch.optim.SGD(m.parameters(), 0.1)\nx = torch.randn(64, 64)\n"
            "y = torch.randint(0, 10, (64,))\nfor i in range(6000):\n    o.zero_grad()\n"
            "    nn.functional.cross_entropy(m(x), y).backward()\n    o.step()\n")
    env = dict(os.environ, OMP_NUM_THREADS="1")
    if subprocess.run([sys.executable, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode:
        info("no torch in %s: the training script is left out" % sys.executable)
        return
    pairs = [(seconds([sys.executable, "-c", code], env=env), seconds([CUWHY, sys.executable, "-c", code], env=env))
             for _ in range(5)]
    tell("training_over_plain_max", statistics.median(under / alone for alone, under in pairs), 1.1)


for bench in (explain, passthrough, torch_script):
    if PATTERN in bench.__name__:
        bench()
