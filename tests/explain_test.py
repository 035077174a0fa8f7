"""`cuwhy explain` on the log of every case: each field of the expected answer, and no confident wrong answer."""
import argparse
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import score_cases
import tap

CASES = os.path.join(HERE, "cases")


class Explain(unittest.TestCase):
    pass


def add(case):
    def test(self):
        args = argparse.Namespace(cuwhy=os.environ["CUWHY"], python=sys.executable, limit=60)
        result = score_cases.score(os.path.join(CASES, case), "explain", args)
        self.assertFalse(result["sure_and_wrong"])
        self.assertEqual(([field for field, right in result["points"] if not right], result["note"]), ([], ""))
    setattr(Explain, "test_" + case.replace("-", "_"), test)


for name in sorted(os.listdir(CASES)):
    if os.path.exists(os.path.join(CASES, name, "expect.json")):
        add(name)

if __name__ == "__main__":
    tap.main()
