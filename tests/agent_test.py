#!/usr/bin/env python3
"""
The agent, from cuwhy's side of the socket: runs the small programs of tests/programs and looks at what is said.

    CUWHY_AGENT=DIR PYTHON tests/agent_test.py

PYTHON is any that has torch. DIR holds inject/, cuwhy_agent/ and runner.py, with or without the C extension;
by default it is src/agent.
"""
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import tap

AGENT = os.path.abspath(os.environ.get("CUWHY_AGENT") or os.path.join(HERE, "..", "src", "agent"))
PROGRAMS = os.path.join(HERE, "programs")


class Cuwhy:
    """Listens, runs one program with the agent, and answers each `held` with the commands it was given."""

    def __init__(self, mode="observe", hold="60", commands=({"do": "scan", "limit": 20}, {"do": "release"})):
        self.mode, self.hold, self.commands = mode, hold, commands
        self.events = []
        self.threads = []
        self.held = threading.Event()

    def environment(self, path):
        site = os.path.join(AGENT, "inject")
        return dict(os.environ, CUWHY_SOCKET=path, CUWHY_MODE=self.mode, CUWHY_HOLD=self.hold, CUWHY_SITE=site,
                    PYTHONPATH=site, OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")

    def __enter__(self):
        self.box = tempfile.mkdtemp()
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(os.path.join(self.box, "s"))
        self.server.listen(16)
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.close()
        shutil.rmtree(self.box)

    def start(self, *args, **env):
        return subprocess.Popen([sys.executable] + list(args), env=dict(self.environment(self.server.getsockname()), **env),
                                cwd=PROGRAMS, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)

    def run(self, *args, **env):
        self.process = self.start(*args, **env)
        self.out, self.err = self.process.communicate(timeout=120)
        for one in self.threads:
            one.join(10)
        self.status = self.process.returncode
        return self

    def accept(self):
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            one = threading.Thread(target=self.serve, args=(connection,), daemon=True)
            one.start()
            self.threads.append(one)

    def serve(self, connection):
        stream = connection.makefile("rb")
        while True:
            head = stream.read(4)
            if len(head) < 4:
                connection.close()
                return
            event = json.loads(stream.read(struct.unpack("<I", head)[0]).decode())
            self.events.append(event)
            if event["event"] == "held":
                self.held.set()
                for command in self.commands:
                    text = json.dumps(command).encode()
                    connection.sendall(struct.pack("<I", len(text)) + text)

    def all(self, kind):
        return [one for one in self.events if one["event"] == kind]

    def one(self, kind):
        found = self.all(kind)
        assert len(found) == 1, "%d %s events; stderr: %s" % (len(found), kind, self.err[-600:])
        return found[0]


def observe(*args, **options):
    with Cuwhy(**options) as cuwhy:
        return cuwhy.run(*args)


class Findings(unittest.TestCase):
    def expect(self, program, **fields):
        cuwhy = observe(program)
        finding = cuwhy.one("finding")
        tensor = fields.pop("tensor", {})
        self.assertEqual({key: finding.get(key) for key in fields}, fields)
        self.assertEqual({key: finding["tensor"].get(key) for key in tensor}, tensor)
        return cuwhy, finding

    def test_label_out_of_range(self):
        cuwhy, finding = self.expect(
            "label_out_of_range.py", cause="label_range", op="torch.nn.functional.cross_entropy", low=0, high=4,
            bad_values=[7], bad_count=1, module="criterion", seen=True,
            tensor={"role": "target", "name": "targets", "dtype": "int64", "shape": [8], "device": "cpu", "max": 7})
        self.assertEqual(finding["place"]["code"], "loss = criterion(model(inputs), targets)")
        scan = cuwhy.one("scan")
        self.assertEqual([scan.get(key) for key in ("loader", "dataset", "epoch", "samples", "found", "values",
                                                    "total_bad_samples", "scanned", "size", "complete", "field")],
                         ["train_loader", "train_set", 0, [23], [23], [7], 1, 40, 40, True, "[1]"])
        self.assertEqual(cuwhy.status, 1)
        self.assertIn("IndexError: Target 7 is out of bounds", cuwhy.err)
        self.assertNotIn("cuwhy_agent", cuwhy.err)
        order = [one["event"] for one in cuwhy.events if one["event"] not in ("progress", "checked")]
        self.assertEqual(order, ["process", "raised", "finding", "held", "scan"])

    def test_shifted_labels_and_workers(self):
        cuwhy, _ = self.expect("label_from_one.py", cause="label_range", bad_values=[-1], low=0, high=3)
        scan = cuwhy.one("scan")
        self.assertEqual((scan["samples"], scan["total_bad_samples"], scan["batch"]), ([0, 4], 3, 0))
        self.assertIn("-1", scan["how"])

    def test_label_shape(self):
        _, finding = self.expect("label_shape.py", cause="label_shape", tensor={"role": "target", "name": "targets"})
        self.assertIn("[4, 1]", finding["detail"])

    def test_embedding_in_model(self):
        self.expect("embedding_in_model.py", cause="embedding_range", module="model.encoder.positions", low=0, high=7,
                    bad_values=[8, 9], bad_elements=[{"at": [8]}, {"at": [9]}],
                    tensor={"role": "input", "name": "where"})

    def test_index_assignment(self):
        self.expect("index_assignment.py", cause="index_range", op="torch.Tensor.index_put_", low=-5, high=4,
                    bad_values=[-6], tensor={"role": "index", "name": "cols"})

    def test_linear_shape(self):
        self.expect("linear_shape.py", cause="shape", op="torch.nn.functional.linear", module="net.1",
                    expect="Linear with in_features=16", tensor={"role": "input", "shape": [2, 12]})

    def test_what_only_a_text_says_was_not_seen(self):
        self.assertEqual([f["seen"] for f in observe("error_text_only.py").all("finding")], [False])

    def test_nan_probabilities(self):
        self.expect("nan_probabilities.py", cause="probability_invalid", op="torch.multinomial", bad_values=["nan"],
                    bad_count=4)

    def test_silent_fault(self):
        cuwhy, _ = self.expect("silent_ctc.py", cause="label_range", silent=True, bad_values=[7])
        self.assertEqual((cuwhy.status, cuwhy.out, cuwhy.one("held")["reason"]), (0, "done\n", "exit"))

    def test_caught_on_purpose(self):
        cuwhy = observe("caught.py")
        self.assertEqual((cuwhy.status, cuwhy.out, cuwhy.all("finding")), (0, "[1.0, -1.0]\n", []))

    def test_plain_count_is_no_proof(self):
        cuwhy = observe("plain_count.py")
        scan = cuwhy.one("scan")
        self.assertIn("plain count", scan["problem"])
        self.assertEqual((scan["batch"], scan["epoch"], scan.get("found")), (1, 0, None))

    def test_masked_and_permuted_labels(self):
        for how, words in (("masked", "where it is not -1"), ("permuted", "in another order")):
            scan = observe("label_masked.py", how).one("scan")
            self.assertEqual((scan["found"], scan["samples"]), ([5], [5]), scan)
            self.assertIn(words, scan["how"])

    def test_nothing_is_wrong(self):
        cuwhy = observe("label_ignored.py")
        self.assertEqual((cuwhy.status, cuwhy.out), (0, "caught\n"))
        self.assertEqual((cuwhy.all("finding"), cuwhy.all("held"), cuwhy.all("note")), ([], [], []))
        self.assertTrue(cuwhy.all("checked"))


class Ends(unittest.TestCase):
    """However a program ends, it ends as it would have."""

    def test_own_hook(self):
        cuwhy = observe("own_hook.py")
        self.assertEqual((cuwhy.status, cuwhy.out, cuwhy.err), (1, "mine: IndexError\n", ""))
        self.assertEqual(cuwhy.one("held")["reason"], "exit")

    def test_plain_error(self):
        cuwhy = observe("plain_error.py")
        self.assertEqual((cuwhy.status, cuwhy.one("raised")["type"], cuwhy.all("held")), (1, "KeyError", []))

    def test_thread(self):
        cuwhy = observe("in_thread.py")
        self.assertEqual((cuwhy.status, cuwhy.out), (0, "main goes on\n"))
        self.assertEqual(cuwhy.one("held")["reason"], "exception")

    def test_never_held(self):
        cuwhy = observe("index_assignment.py", hold="0")
        self.assertEqual((cuwhy.status, cuwhy.all("held"), len(cuwhy.all("finding"))), (1, [], 1))

    def test_hold_ends_by_itself(self):
        cuwhy = observe("index_assignment.py", hold="0.3", commands=())
        self.assertEqual((cuwhy.status, len(cuwhy.all("held"))), (1, 1))

    def test_signals_release(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with Cuwhy(commands=()) as cuwhy:
                process = cuwhy.start("index_assignment.py")
                self.assertTrue(cuwhy.held.wait(60))
                process.send_signal(number)
                process.communicate(timeout=20)
                self.assertEqual(process.returncode, 1)

    def test_ends_at_first_finding_in_a_rerun(self):
        cuwhy = observe("silent_ctc.py", mode="blocking")
        self.assertEqual((cuwhy.status, cuwhy.out, cuwhy.one("held")["reason"]), (0, "", "finding"))

    def test_random_state_and_broken_samples(self):
        cuwhy = observe("many_states.py")
        scan = cuwhy.one("scan")
        self.assertIn("same state True True", cuwhy.out)
        self.assertEqual((scan["found"], scan["errors"], scan["complete"]), ([1, 6], 1, False))


class Children(unittest.TestCase):
    def test_processes(self):
        for method in ("fork", "spawn"):
            cuwhy = observe("in_child.py", method)
            self.assertEqual((cuwhy.status, cuwhy.out), (0, "child ended with 1\n"))
            finding = cuwhy.one("finding")
            self.assertNotEqual(finding["pid"], cuwhy.all("process")[0]["pid"])
            self.assertEqual((len(cuwhy.all("process")), len(cuwhy.all("held"))), (2, 1))
            self.assertEqual(cuwhy.one("raised")["pid"], finding["pid"])

    def test_worker_is_not_held(self):
        cuwhy = observe("in_worker.py")
        finding = cuwhy.one("finding")
        self.assertEqual((finding["cause"], finding["bad_values"]), ("index_range", [3]))
        self.assertEqual((cuwhy.status, cuwhy.one("raised")["pid"] != finding["pid"]), (1, True))


class Unseen(unittest.TestCase):
    def test_transparent(self):
        cuwhy = observe("transparent.py")
        self.assertEqual((cuwhy.status, cuwhy.out), (0, "as it was\n"), cuwhy.err)

    @unittest.skipUnless(hasattr(torch, "compile"), "this PyTorch has no torch.compile")
    def test_compiled(self):
        cuwhy = observe("compiled.py")
        self.assertEqual((cuwhy.status, cuwhy.out), (0, "one graph\n"), cuwhy.err)


class Injection(unittest.TestCase):
    def run_python(self, *args, **env):
        with Cuwhy() as cuwhy:
            return cuwhy.run(*args, **env)

    def test_no_torch(self):
        cuwhy = self.run_python("-c", "import sys; print('socket' in sys.modules, [p for p in sys.path if 'inject' in p])")
        self.assertEqual((cuwhy.out, cuwhy.err, cuwhy.events), ("False []\n", "", []))

    def test_users_own_sitecustomize(self):
        with tempfile.TemporaryDirectory() as box:
            with open(os.path.join(box, "sitecustomize.py"), "w") as own:
                own.write("import sys; print('own', __name__, sys.modules[__name__].__file__ == __file__)")
            path = os.pathsep.join((os.path.join(AGENT, "inject"), box))
            cuwhy = self.run_python("-c", "import sitecustomize as s, torch; print(s.__file__)", PYTHONPATH=path)
        self.assertEqual(cuwhy.out, "own sitecustomize True\n%s\n" % os.path.join(box, "sitecustomize.py"))
        self.assertEqual(len(cuwhy.all("process")), 1)

    def test_none_is_none(self):
        cuwhy = self.run_python("-c", "import sys; print('sitecustomize' in sys.modules)")
        plain = subprocess.run([sys.executable, "-c", "import sys; print('sitecustomize' in sys.modules)"],
                               stdout=subprocess.PIPE, universal_newlines=True)
        self.assertEqual((cuwhy.out, cuwhy.err), (plain.stdout, ""))

    def test_dead_socket(self):
        cuwhy = self.run_python("plain_error.py", CUWHY_SOCKET="/nonexistent/s")
        self.assertEqual((cuwhy.status, cuwhy.events), (1, []))
        self.assertIn("KeyError: 'missing'", cuwhy.err)

    def test_broken_torch(self):
        for body in ("", "raise ImportError('broken')"):
            with tempfile.TemporaryDirectory() as box:
                with open(os.path.join(box, "torch.py"), "w") as fake:
                    fake.write(body)
                path = os.pathsep.join((os.path.join(AGENT, "inject"), box))
                cuwhy = self.run_python("-c", "import torch; print(torch.__file__)", PYTHONPATH=path)
                self.assertEqual((cuwhy.status, cuwhy.events), (1 if body else 0, []))

    def test_runner(self):
        runner = os.path.join(AGENT, "runner.py")
        script = os.path.join(PROGRAMS, "index_assignment.py")
        cuwhy = self.run_python("-I", runner, script)
        self.assertEqual((cuwhy.status, cuwhy.one("finding")["place"]["file"]), (1, script))
        tell = "import sys; print(__name__, sys.argv, sys.path[0] == sys.path[0])"
        cuwhy = self.run_python("-I", runner, "-c", tell, "a", "-b")
        self.assertEqual(cuwhy.out, "__main__ ['-c', 'a', '-b'] True\n")
        cuwhy = self.run_python("-E", runner, "-m", "index_assignment")
        self.assertEqual((cuwhy.status, len(cuwhy.all("finding"))), (1, 1))


if __name__ == "__main__":
    tap.main()
