"""Every way of starting a Python gets the agent in: the verdict is certain, from the real binary with real PyTorch."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import tap

CUWHY = os.environ.get("CUWHY", os.path.abspath("cuwhy"))
SCRIPT = "import sys\nimport torch\nassert sys.argv[1:] == ['a', '-b']\ntorch.zeros(3)[torch.tensor([3])]\n"


class Ways(unittest.TestCase):
    def setUp(self):
        box = tempfile.TemporaryDirectory(prefix="cuwhy-test-")
        self.addCleanup(box.cleanup)
        self.box = box.name
        with open(os.path.join(self.box, "fails.py"), "w") as out:
            out.write("#!%s\n%s" % (sys.executable, SCRIPT))
        os.chmod(os.path.join(self.box, "fails.py"), 0o755)

    def report(self, *command):
        env = dict(os.environ, XDG_STATE_HOME=os.path.join(self.box, "state"), OMP_NUM_THREADS="1",
                   PYTHONDONTWRITEBYTECODE="1")
        done = subprocess.run([CUWHY, "--json", "r.json", "--session", "s.cuwhy", *command], cwd=self.box, env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        self.assertEqual(done.returncode, 1, done.stderr.decode())
        with open(os.path.join(self.box, "r.json")) as file:
            report = json.load(file)
        again = subprocess.run([CUWHY, "report", "--format", "json", "s.cuwhy"], cwd=self.box, stdout=subprocess.PIPE)
        self.assertEqual(dict(json.loads(again.stdout), created=0), dict(report, created=0))
        return report

    def check(self, *command):
        verdict = self.report(*command)["verdict"]
        self.assertEqual((verdict["cause"], verdict["confidence"], verdict["bad_values"]), ("index_range", "certain", [3]))

    def test_script(self):
        self.check(sys.executable, "fails.py", "a", "-b")

    def test_module(self):
        self.check(sys.executable, "-m", "fails", "a", "-b")

    def test_code(self):
        self.check(sys.executable, "-c", SCRIPT, "a", "-b")

    def test_shebang(self):
        self.check("./fails.py", "a", "-b")

    def test_child(self):
        self.check("sh", "-c", '"$0" fails.py a -b', sys.executable)

    def test_isolated(self):
        self.check(sys.executable, "-I", "fails.py", "a", "-b")

    @unittest.skipIf(torch.__version__ < "2", "the torchrun of PyTorch 1.13 does not start on Python 3.11")
    def test_torchrun(self):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        shutil.copy(os.path.join(HERE, "programs", "two_ranks.py"), self.box)
        report = self.report(sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port",
                             str(port), "two_ranks.py")
        self.assertEqual((report["fault"]["rank"], report["program"]["ranks"]), (1, 2))
        self.assertEqual((report["verdict"]["confidence"], report["verdict"]["data"]["samples"]), ("certain", [33]))


if __name__ == "__main__":
    tap.main()
