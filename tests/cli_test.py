"""The real binary from outside: what it passes through, its exit statuses, and what it does with bad input."""
import json
import os
import pty
import re
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap

CUWHY = os.environ.get("CUWHY", os.path.abspath("cuwhy"))
HERE = os.path.dirname(os.path.abspath(__file__))
CASES = os.path.join(HERE, "cases")


class Box(unittest.TestCase):
    """A folder of its own, a home of its own."""

    def setUp(self):
        self.box = tempfile.TemporaryDirectory(prefix="cuwhy-test-")
        self.addCleanup(self.box.cleanup)
        self.work = os.path.join(self.box.name, "work")
        os.mkdir(self.work)
        self.env = dict(os.environ, XDG_STATE_HOME=os.path.join(self.box.name, "state"), LC_ALL="C.UTF-8")

    def run_cuwhy(self, *args, stdin=b"", limit=60, **more):
        return subprocess.run([CUWHY, *args], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              cwd=more.pop("cwd", self.work), env=more.pop("env", self.env), timeout=limit, **more)

    def write(self, name, data):
        path = os.path.join(self.work, name)
        with open(path, "wb") as out:
            out.write(data)
        return path

    def read(self, name):
        with open(os.path.join(self.work, name), "rb") as file:
            return file.read()

    def one_line(self, done, *words):
        text = done.stderr.decode()
        self.assertEqual(text.count("\n"), 1, text)
        self.assertTrue(text.startswith("cuwhy: "), text)
        for word in words:
            self.assertIn(word, text)


class Explain(Box):
    LOG = (b"../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], "
           b"thread: [5,0,0] Assertion `t >= 0 && t < n_classes` failed.\n")

    def test_file_and_standard_input_agree(self):
        path = self.write("log.txt", self.LOG)
        one = json.loads(self.run_cuwhy("explain", "--json", "-", path).stdout)
        two = json.loads(self.run_cuwhy("explain", "--json", "-", "-", stdin=self.LOG).stdout)
        one.pop("created"), two.pop("created")
        self.assertEqual(one, two)
        self.assertEqual(one["verdict"]["cause"], "label_range")
        self.assertEqual(one["schema"], "cuwhy-report/1")

    def test_every_format(self):
        path = self.write("log.txt", self.LOG)
        for form, mark in (("text", b"label_range"), ("markdown", b"# "), ("json", b'"schema"'), ("sarif", b"2.1.0")):
            done = self.run_cuwhy("explain", "--format", form, path)
            self.assertEqual(done.returncode, 0)
            self.assertIn(mark, done.stdout)

    def test_utf16(self):
        path = self.write("log.txt", self.LOG.decode().encode("utf-16"))
        self.assertEqual(self.run_cuwhy("explain", path).returncode, 0)

    def test_nothing_to_diagnose(self):
        done = self.run_cuwhy("explain", self.write("fine.log", b"epoch 1 loss 0.3\n" * 50))
        self.assertEqual(done.returncode, 1)
        self.one_line(done, "fine.log")

    def test_binary_is_harmless(self):
        done = self.run_cuwhy("explain", self.write("core", os.urandom(300000)))
        self.assertIn(done.returncode, (0, 1))

    def test_one_line_without_end(self):
        data = b"x" * 30000000 + self.LOG.rstrip(b"\n")
        done = self.run_cuwhy("explain", "--json", "-", "-", stdin=data)
        self.assertEqual(json.loads(done.stdout)["fault"]["kind"], "device_assert")

    def test_unusable(self):
        self.one_line(self.run_cuwhy("explain", "absent.log"), "absent.log", "No such file")
        self.one_line(self.run_cuwhy("explain", self.write("empty", b"")), "empty")
        self.one_line(self.run_cuwhy("explain", self.work), "directory")
        for args in (("absent.log",), (self.work,), ("--format", "pdf", "x"), ("--nonsense",), ("a", "b"), ("--json",)):
            self.assertEqual(self.run_cuwhy("explain", *args).returncode, 2, args)

    def test_hostile_bytes_are_shown(self):
        evil = b"RuntimeError: CUDA error: device-side assert triggered\x1b]0;owned\x07\x1b[2J\n"
        log = b'Traceback (most recent call last):\n  File "/w/\x1b[31mt.py", line 3, in <module>\n    f()\n' + evil
        done = self.run_cuwhy("explain", self.write("log", log))
        self.assertNotIn(b"\x1b", done.stdout + done.stderr)
        self.assertNotIn(b"\x07", done.stdout + done.stderr)

    def test_unwritable_json(self):
        done = self.run_cuwhy("explain", "--json", "/proc/none/x", self.write("log", self.LOG))
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"/proc/none/x", done.stderr)


class Run(Box):
    def test_output_and_status_are_the_programs_own(self):
        script = "import sys; sys.stdout.buffer.write(b'out\\0\\xff\\r\\n'); sys.stdout.flush(); " \
                 "sys.stderr.buffer.write(b'err\\x1b'); sys.exit(7)"
        plain = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        done = self.run_cuwhy(sys.executable, "-c", script)
        self.assertEqual((done.stdout, done.stderr, done.returncode), (plain.stdout, plain.stderr, 7))
        self.assertEqual(os.listdir(self.work), [])
        self.assertEqual(os.listdir(self.env["XDG_STATE_HOME"] + "/cuwhy"), [])

    def test_a_program_that_ends_well_gets_no_word(self):
        done = self.run_cuwhy("echo", "hi")
        self.assertEqual((done.stdout, done.stderr, done.returncode), (b"hi\n", b"", 0))
        self.assertIn(b"nothing was found", self.run_cuwhy("-v", "echo", "hi").stderr)

    def test_standard_input_and_arguments(self):
        done = self.run_cuwhy("run", "--batch", "--", "sh", "-c", 'cat; printf "[%s]" "$@"', "x", "--json", "a b",
                              stdin=b"fed\0in")
        self.assertEqual(done.stdout, b"fed\0in[--json][a b]")

    def test_signals(self):
        self.assertEqual(self.run_cuwhy("sh", "-c", "kill -SEGV $$").returncode, 128 + signal.SIGSEGV)
        code = "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *a: sys.exit(9))\n" \
               "print('ready', flush=True)\ntime.sleep(30)"
        child = subprocess.Popen([CUWHY, sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=self.env, cwd=self.work)
        self.assertEqual(child.stdout.readline(), b"ready\n")
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=20)
        self.assertEqual(child.returncode, 9)

    def test_the_program_keeps_default_signals(self):
        code = "import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.getsignal(signal.SIGINT))"
        plain = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE).stdout
        self.assertEqual(self.run_cuwhy(sys.executable, "-c", code).stdout, plain)

    def test_terminal_where_there_is_one(self):
        code = "import os, sys; print(sys.stdout.isatty(), sys.stderr.isatty(), os.get_terminal_size(1).columns)"
        ours, theirs = pty.openpty()
        import fcntl, struct, termios
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 123, 0, 0))
        done = subprocess.run([CUWHY, sys.executable, "-c", code], stdout=theirs, stderr=subprocess.PIPE, env=self.env,
                              stdin=subprocess.DEVNULL, cwd=self.work)
        self.assertEqual(os.read(ours, 1000), b"True False 123\r\n")
        self.assertEqual((done.stderr, done.returncode), (b"", 0))
        os.close(ours), os.close(theirs)

    def test_commands_that_cannot_be_run(self):
        done = self.run_cuwhy("no-such-command-here")
        self.assertEqual(done.returncode, 127)
        self.one_line(done, "no-such-command-here", "not found")
        path = self.write("data.txt", b"not a program")
        done = self.run_cuwhy(path)
        self.assertEqual(done.returncode, 126)
        self.one_line(done, path, "Permission denied")
        os.chmod(path, 0o755)
        self.assertIn(self.run_cuwhy(path).returncode, (0, 126, 127))  # execvp lets a shell read it
        self.assertEqual(self.run_cuwhy().returncode, 2)
        for args in (("run",), ("--frob", "true"), ("--steps", "nap", "true"), ("--limit", "cpu_rerun=soon", "true")):
            self.assertEqual(self.run_cuwhy(*args).returncode, 125, args)

    def test_much_output(self):
        done = self.run_cuwhy("sh", "-c", "yes abcdefgh | head -c 50000000")
        self.assertEqual(len(done.stdout), 50000000)

    def test_a_daemon_keeps_its_output(self):
        script = "(sleep 1; echo late) & echo early"
        start = time.time()
        done = self.run_cuwhy("sh", "-c", script)
        self.assertEqual(done.stdout, b"early\nlate\n")  # our pipe ends when the daemon has ended, as without cuwhy
        self.assertLess(time.time() - start, 20)

    def test_working_directory_deleted(self):
        gone = os.path.join(self.work, "gone")
        os.mkdir(gone)
        done = self.run_cuwhy("sh", "-c", "rmdir ../gone; exit 3", cwd=gone)
        self.assertEqual(done.returncode, 3)

    def test_a_printed_assertion_is_diagnosed(self):
        log = os.path.join(CASES, "A28-medical-codes", "log.txt")
        done = self.run_cuwhy("--json", "r.json", "--session", "s.cuwhy", "sh", "-c", "cat %s >&2; exit 1" % log)
        self.assertEqual(done.returncode, 1)
        report = json.loads(self.read("r.json"))
        self.assertEqual(report["verdict"]["confidence"], "likely")
        self.assertEqual(report["program"]["exit_status"], 1)
        self.assertEqual([s["id"] for s in report["steps"]], STEPS)
        self.assertIn(b"cuwhy: ", done.stderr)

    def test_json_alone(self):
        log = os.path.join(CASES, "A28-medical-codes", "log.txt")
        done = self.run_cuwhy("--json", "-", "sh", "-c", "echo hello; cat %s; exit 1" % log)
        self.assertEqual(json.loads(done.stdout)["fault"]["kind"], "device_assert")
        self.assertIn(b"hello", done.stderr)

    def test_no_session_can_be_kept(self):
        log = os.path.join(CASES, "A28-medical-codes", "log.txt")
        for env in (dict(self.env, XDG_STATE_HOME="/proc/none"), {k: v for k, v in self.env.items()
                                                                 if k not in ("XDG_STATE_HOME", "HOME")}):
            done = self.run_cuwhy("sh", "-c", "cat %s >&2; exit 4" % log, env=env)
            self.assertEqual(done.returncode, 4)
            self.assertIn(b"no session is kept", done.stderr)
            self.assertIn(b"range", done.stderr)

    def test_a_session_that_cannot_grow(self):
        def small():  # writes beyond 256 KiB fail, as on a full disk
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (256 << 10, 256 << 10))
        log = os.path.join(CASES, "A28-medical-codes", "log.txt")
        done = self.run_cuwhy("sh", "-c", "yes | head -c 3000000; cat %s >&2; exit 5" % log, preexec_fn=small)
        self.assertEqual(done.returncode, 5)
        self.assertIn(b"the session ends here", done.stderr)
        self.assertIn(b"range", done.stderr)
        self.assertEqual(len(done.stdout), 3000000)

    def test_sessions_of_one_second_have_names_of_their_own(self):
        log = os.path.join(CASES, "A28-medical-codes", "log.txt")
        children = [subprocess.Popen([CUWHY, "sh", "-c", "cat %s; exit 1" % log], cwd=self.work, env=self.env,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(6)]
        for child in children:
            self.assertNotIn(b"no session is kept", child.communicate()[1])
        self.assertEqual(len(os.listdir(os.path.join(self.env["XDG_STATE_HOME"], "cuwhy"))), 6)

    def test_an_existing_session_is_not_overwritten(self):
        path = self.write("mine", b"precious")
        done = self.run_cuwhy("--session", path, "true")
        self.assertEqual(self.read(path), b"precious")
        self.assertIn(b"exists already", done.stderr)


STEPS = ["crash_capture", "cpu_rerun", "label_check", "dataloader_scan", "shape_check", "device_check",
         "blocking_launch"]


class Report(Box):
    def session(self, *more):
        log = os.path.join(CASES, "A28-medical-codes", "log.txt")
        self.run_cuwhy("--session", "s.cuwhy", "--json", "r.json", *more, "sh", "-c", "cat %s >&2; exit 1" % log)
        return os.path.join(self.work, "s.cuwhy")

    def test_the_same_report_byte_for_byte(self):
        path = self.session()
        again = self.run_cuwhy("report", "--format", "json", path)
        first = self.read("r.json")
        blank = lambda text: re.sub(rb'"created": "[^"]*"', b"", text)
        self.assertEqual(blank(again.stdout), blank(first))
        self.assertEqual(again.returncode, 0)

    def test_it_can_be_read_with_a_shell(self):
        db = sqlite3.connect(self.session())
        found = db.execute("select fact_id from fact_step where status = 'found'").fetchone()
        self.assertEqual(found, ("crash_capture",))
        self.assertGreater(db.execute("select sum(length(bytes)) from output").fetchone()[0], 1000)

    def test_only_one_file_is_left(self):
        self.session()
        self.assertEqual(sorted(os.listdir(self.work)), ["r.json", "s.cuwhy"])
        self.assertEqual(stat.S_IMODE(os.stat(os.path.join(self.work, "s.cuwhy")).st_mode), 0o600)

    def test_killed_while_writing(self):
        child = subprocess.Popen([CUWHY, "--session", "s.cuwhy", "sh", "-c", "cat %s; exec sleep 30" %
                                  os.path.join(CASES, "A28-medical-codes", "log.txt")], cwd=self.work, env=self.env,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        seen = b""
        while b"Assertion" not in seen:
            seen += os.read(child.stdout.fileno(), 65536)
        time.sleep(0.3)
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        done = self.run_cuwhy("report", "s.cuwhy")
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"range", done.stdout)

    def test_several_sessions_are_one_report(self):
        one = self.session()
        log = os.path.join(CASES, "A01-imagenet-list-file", "log.txt")
        self.run_cuwhy("--session", "t.cuwhy", "sh", "-c", "cat %s >&2; exit 1" % log)
        done = self.run_cuwhy("report", "--format", "json", one, "t.cuwhy")
        report = json.loads(done.stdout)
        self.assertEqual([a["source"].split("/")[-1] for a in report["fault"]["assertions"]],
                         ["IndexKernelUtils.cu:16", "Loss.cu:257"])
        self.assertEqual(len(report["steps"]), 7)
        self.assertIsNone(report["session"])

    def test_redact(self):
        path = self.session()
        done = self.run_cuwhy("report", "--redact", "--format", "json", path)
        self.assertNotIn(self.work.encode(), done.stdout)
        json.loads(done.stdout)

    def test_full_disk_for_the_report(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([CUWHY, "report", self.session()], stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"could not be written", done.stderr)

    def test_bad_sessions(self):
        path = self.session()
        for name, data in (("foreign", b"hello" * 100), ("empty", b"")):
            done = self.run_cuwhy("report", self.write(name, data))
            self.assertEqual(done.returncode, 2)
            self.one_line(done, name)
        whole = self.read(path)
        done = self.run_cuwhy("report", self.write("cut", whole[:len(whole) // 8192 * 4096]))
        self.assertIn(b"cut", done.stderr)
        self.assertNotIn(b"Sanitizer", done.stderr)
        db = sqlite3.connect(path)
        db.execute("pragma user_version = 7")
        db.commit(), db.close()
        done = self.run_cuwhy("report", path)
        self.assertEqual(done.returncode, 2)
        self.one_line(done, "newer cuwhy")
        self.assertEqual(self.run_cuwhy("report").returncode, 2)
        self.assertEqual(self.run_cuwhy("report", "absent").returncode, 2)


class Help(Box):
    def test_every_verb_has_help_and_version(self):
        for verb in ([], ["run"], ["explain"], ["report"], ["demo"]):
            done = self.run_cuwhy(*verb, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertIn(b"cuwhy", done.stdout)
            self.assertLessEqual(max(map(len, done.stdout.splitlines())), 120)
            self.assertEqual(self.run_cuwhy(*verb, "--version").stdout[:6], b"cuwhy ")

    def test_demos_are_listed_with_a_line_each(self):
        done = self.run_cuwhy("demo")
        self.assertEqual(done.returncode, 0)
        self.assertGreaterEqual(len(done.stdout.splitlines()), 10)
        self.assertEqual(self.run_cuwhy("demo", "absent").returncode, 2)


if __name__ == "__main__":
    tap.main()
