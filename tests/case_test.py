"""The real binary on every case, from crash to verdict: the scorer's floors, and no confident wrong answer."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import tap

FLOORS = {"explain": 0.97, "run": 0.90}


class Cases(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as box:
            out = os.path.join(box, "scores.json")
            env = dict(os.environ, XDG_STATE_HOME=box, OMP_NUM_THREADS="1")
            done = subprocess.run([sys.executable, os.path.join(HERE, "score_cases.py"), "--cuwhy", os.environ["CUWHY"],
                                   "--json", out, os.path.join(HERE, "cases")], env=env, stdout=subprocess.PIPE)
            cls.text = done.stdout.decode()
            with open(out) as file:
                cls.results = json.load(file)
        for line in cls.text.splitlines():
            if "wrong:" in line or line.startswith(("explain:", "run:")):
                print("# " + line)

    def test_nothing_confidently_wrong(self):
        self.assertEqual([r["case"] for r in self.results if r["sure_and_wrong"]], [])

    def test_every_case_gives_a_report(self):
        self.assertEqual([(r["case"], r["note"]) for r in self.results if r["note"]], [])

    def floor(self, mode):
        points = [right for r in self.results if r["mode"] == mode for _, right in r["points"]]
        self.assertGreaterEqual(sum(points) / len(points), FLOORS[mode])

    def test_explain_floor(self):
        self.floor("explain")

    def test_run_floor(self):
        self.floor("run")


if __name__ == "__main__":
    tap.main()
