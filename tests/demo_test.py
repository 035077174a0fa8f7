"""Every bundled demo is diagnosed right: certain, with the value, the line, and the samples where there is a loader."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import tap

CUWHY = os.environ.get("CUWHY", os.path.abspath("cuwhy"))
DEMOS = os.path.join(HERE, "..", "demo")

# name: cause, text of the guilty line, bad value, range, total of bad samples; None: not to be had
EXPECTED = {
    "mnist-labels": ("label_shape", "loss = criterion(model(images), labels)", None, None, None),
    "label-ten": ("label_range", "loss = criterion(out, labels)", 10, [0, 9], 2),
    "one-hot": ("label_shape", "loss = F.cross_entropy(logits, y.to(device))", None, None, None),
    "corrupt-csv": ("label_range", "loss = nn.functional.cross_entropy(scores, batch[\"kind\"].to(device))", None, [0, 3], 3),
    "batch-mismatch": ("batch_size", "loss = criterion(outputs, targets.to(device))", None, None, None),
    "last-batch": ("batch_size", "prediction = model(x.to(device))", None, None, None),
    "wrong-device": ("device_mismatch", "outputs = model(inputs)", None, None, None),
    "big-token": ("embedding_range", "return self.rnn(self.embed_tokens(ids))[0]", 8, [0, 7], 20),
    "bce-range": ("bce_input_range", "loss = criterion(model(images.to(device)), mask.to(device))", 255.0, [0, 1], 20),
    "empty-batch": ("empty_batch", "loss = nn.functional.cross_entropy(model(x[keep]), y[keep])", None, None, None),
}


class Demos(unittest.TestCase):
    def check(self, name, cause, line, value, valid, total):
        with tempfile.TemporaryDirectory() as box:
            env = dict(os.environ, XDG_STATE_HOME=box, PYTHON=sys.executable, OMP_NUM_THREADS="1")
            subprocess.run([CUWHY, "demo", "--json", "r.json", name], cwd=box, env=env, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, timeout=120)
            with open(os.path.join(box, "r.json")) as file:
                report = json.load(file)
        verdict = report["verdict"]
        self.assertEqual((verdict["cause"], verdict["confidence"]), (cause, "certain"))
        self.assertEqual(verdict["location"]["code"], line)
        with open(os.path.join(DEMOS, name + ".py")) as file:
            self.assertEqual(file.read().splitlines()[verdict["location"]["line"] - 1].strip(), line)
        if value is not None:
            self.assertIn(value, verdict["bad_values"])
        if valid is not None:
            self.assertEqual(verdict["valid_range"], valid)
        if total is not None:
            self.assertEqual(verdict["data"]["total_bad_samples"], total)
            self.assertTrue(verdict["data"]["samples"])
        self.assertTrue(all(step["status"] in ("found", "clean", "skipped", "failed") for step in report["steps"]))
        self.assertFalse(re.search(r"\{\w+\}", verdict["fix"]))

    def test_the_table_is_whole(self):
        listed = subprocess.run([CUWHY, "demo"], stdout=subprocess.PIPE).stdout.decode().split("\n\n")[0]
        self.assertEqual([row.split()[0] for row in listed.splitlines()], list(EXPECTED))


for name, row in EXPECTED.items():
    setattr(Demos, "test_" + name.replace("-", "_"), lambda self, name=name, row=row: self.check(name, *row))

if __name__ == "__main__":
    tap.main()
