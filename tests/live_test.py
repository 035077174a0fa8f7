"""
A run while it goes on: agents, reruns, signals and pipes. No torch: the programs here play the agent themselves
(docs/agent.md), each a few lines on top of FAKE.
"""
import os
import pty
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap

CUWHY = os.environ.get("CUWHY", os.path.abspath("cuwhy"))
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

FAKE = r'''
import json, os, signal, socket, struct, sys, threading, time
MODE = os.environ.get("CUWHY_MODE")
ASSERTION = ("../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], "
             "thread: [5,0,0] Assertion `t >= 0 && t < n_classes` failed.")

def connect():
    s = socket.socket(socket.AF_UNIX)
    s.connect(os.environ["CUWHY_SOCKET"])
    return s

def say(s, event, **fields):
    data = json.dumps(dict(fields, event=event, pid=os.getpid())).encode()
    s.sendall(struct.pack("<I", len(data)) + data)

def hear(s):
    head = s.recv(4, socket.MSG_WAITALL)
    return json.loads(s.recv(struct.unpack("<I", head)[0], socket.MSG_WAITALL))["do"] if len(head) == 4 else "end"

def agent():
    s = connect()
    say(s, "process", python="3.11", torch="2.13.0")
    return s

def fail(s):
    """The program has failed on the GPU, and nothing is known of the values: calls for a rerun."""
    print(ASSERTION, file=sys.stderr, flush=True)

def find(s):
    """The agent has seen the bad values: calls for a scan."""
    say(s, "finding", cause="label_range", op="torch.nn.functional.cross_entropy", low=0, high=9, bad_values=[10],
        tensor={"role": "target", "name": "labels", "shape": [64], "dtype": "int64"}, bad_count=1, seen=True,
        place={"file": "t.py", "line": 3, "function": "f", "code": "x"})

def leave(name, text=""):
    with open(name + ".part", "w") as out:
        out.write(str(text))
    os.rename(name + ".part", name)

def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.01)

def daemon(name, work):
    """Leaves a process of another session and parent, which does `work`; its pid is in the file `name`."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            leave(name, os.getpid())
            work()
        os._exit(0)
    os.wait()
    wait_for(name)

def quiet():
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(nothing, fd)
'''


def gone(pid):
    """Has the process ended? What is a zombie has."""
    try:
        with open("/proc/%d/stat" % pid) as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


class Live(unittest.TestCase):
    def setUp(self):
        box = tempfile.TemporaryDirectory(prefix="cuwhy-test-")
        self.addCleanup(box.cleanup)
        self.work = os.path.join(box.name, "work")
        os.mkdir(self.work)
        self.env = dict(os.environ, XDG_STATE_HOME=os.path.join(box.name, "state"), LC_ALL="C.UTF-8")

    def start(self, program, *options, **more):
        with open(os.path.join(self.work, "program.py"), "w") as out:
            out.write(FAKE + program)
        child = subprocess.Popen([CUWHY, "--session", "s.cuwhy", *options, sys.executable, "program.py"],
                                 stdin=subprocess.DEVNULL, stdout=more.pop("stdout", subprocess.PIPE),
                                 stderr=more.pop("stderr", subprocess.PIPE), cwd=self.work, env=self.env, **more)
        self.addCleanup(lambda: child.poll() is None and child.kill())
        return child

    def end(self, child, limit=30):
        """What it printed; cuwhy's own complaints about itself are failures."""
        out, err = child.communicate(timeout=limit)
        self.assertNotIn(b"Sanitizer", err or b"")
        self.assertNotIn(b"runtime error", err or b"")
        return out, err

    def until(self, happened, seconds=20):
        end = time.monotonic() + seconds
        while not happened():
            self.assertLess(time.monotonic(), end, "it did not happen")
            time.sleep(0.01)

    def left(self, name):
        """What the program has left in a file of that name, waited for."""
        path = os.path.join(self.work, name)
        self.until(lambda: os.path.exists(path))
        with open(path) as file:
            return file.read()

    def make(self, name):
        open(os.path.join(self.work, name), "w").close()

    def rows(self, query):
        db = sqlite3.connect(os.path.join(self.work, "s.cuwhy"))
        self.addCleanup(db.close)
        return db.execute(query).fetchall()


class Agents(Live):
    def test_a_scan_is_taken_only_from_the_process_that_was_asked(self):
        child = self.start("""
a, b = agent(), agent()
find(a)
say(b, "scan", total_bad_samples=5)
say(a, "scan", total_bad_samples=6)
say(a, "held", reason="exception")
while hear(a) == "scan":
    say(b, "scan", total_bad_samples=7)
    time.sleep(0.2)
    say(a, "scan", total_bad_samples=1, scanned=10, complete=True)
    say(a, "scan", total_bad_samples=8)
sys.exit(1)
""", "--steps", "dataloader_scan")
        self.end(child)
        self.assertEqual(child.returncode, 1)
        self.assertEqual(self.rows("select total_bad_samples from fact_scan"), [(1,)])

    def test_a_process_that_hangs_in_the_scan_does_not_hang_the_program(self):
        child = self.start("""
a = agent()
find(a)
say(a, "held", reason="exception")
hear(a)
time.sleep(60)
""", "--steps", "dataloader_scan", "--limit", "dataloader_scan=0.1")
        self.end(child)
        self.assertEqual(child.returncode, 128 + signal.SIGTERM)
        self.assertEqual(self.rows("select signal, stopped from fact_ended"), [(signal.SIGTERM, None)])
        self.assertIn("did not come back", self.rows("select text from fact_note")[0][0])
        self.assertEqual(self.rows("select * from fact_scan"), [])

    def test_a_process_that_dies_in_the_scan(self):
        child = self.start("""
a = agent()
find(a)
say(a, "held", reason="exception")
hear(a)
os.kill(os.getpid(), signal.SIGSEGV)
""", "--steps", "dataloader_scan")
        start = time.monotonic()
        self.end(child)
        self.assertEqual(child.returncode, 128 + signal.SIGSEGV)
        self.assertLess(time.monotonic() - start, 5)

    def test_what_cannot_be_read_is_told(self):
        for bad in ('struct.pack("<I", 9 << 20)', 'struct.pack("<I", 3) + b"{]}"',
                    'struct.pack("<I", 28) + b\'{"big":18446744073709551616}\''):
            with self.subTest(bad):
                child = self.start("a = agent()\na.sendall(%s)\nassert hear(a) == 'end'\n" % bad)
                self.end(child)
                self.assertEqual(child.returncode, 0)
                notes = self.rows("select text from fact_note")
                self.assertEqual(len(notes), 1)
                self.assertIn("unreadable", notes[0][0])
                os.unlink(os.path.join(self.work, "s.cuwhy"))

    def test_a_process_that_goes_on_talking(self):
        child = self.start("""
def talk():
    quiet()
    a = agent()
    data = b'{"event":"progress","done":1,"total":2}'
    try:
        while True:
            a.sendall((struct.pack("<I", len(data)) + data) * 1000)
    except OSError:
        leave("cut")
daemon("talks", talk)
sys.exit(3)
""")
        self.end(child)
        self.assertEqual(child.returncode, 3)
        self.left("cut")

    def test_more_processes_than_descriptors(self):
        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (36, 36))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        child = self.start("""
all = [connect() for _ in range(30)]
time.sleep(1.5)
for one in all[:15]:
    one.close()
say(all[-1], "note", text="heard")
say(all[-1], "held", reason="exit")
leave("answer", hear(all[-1]))
""", preexec_fn=few)
        self.end(child)
        self.assertEqual(self.left("answer"), "release")
        self.assertEqual(self.rows("select text from fact_note"), [("heard",)])
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertLess(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1.2)

    def test_the_run_has_the_pid_of_the_program(self):
        child = self.start("""
a = agent()
leave(MODE, os.getpid())
if MODE == "observe":
    fail(a)
    sys.exit(1)
""", "--steps", "cpu_rerun")
        self.end(child)
        pids = [(int(self.left("observe")),), (int(self.left("redirect")),)]
        self.assertEqual(self.rows("select pid from fact_run order by id"), pids)


# A first run that fails and is held, so that the rerun goes on beside it.
HELD = """
a = agent()
if MODE == "observe":
    for signo in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(signo, signal.SIG_IGN)
    fail(a)
    say(a, "held", reason="exception")
    hear(a)
    sys.exit(1)
"""


class Reruns(Live):
    def test_it_ends_as_the_program_does(self):
        for how, status, signo in (("sys.exit(5)", 5, None), ("os.kill(os.getpid(), signal.SIGSEGV)", None, 11),
                                   ("os.kill(os.getpid(), signal.SIGKILL)", None, 9)):
            with self.subTest(how):
                child = self.start(HELD + how, "--steps", "cpu_rerun")
                self.end(child)
                self.assertEqual(child.returncode, 1)
                ended = self.rows("select exit_status, signal, stopped from fact_ended where name = 'cpu_rerun'")
                self.assertEqual(ended, [(status, signo, None)])
                os.unlink(os.path.join(self.work, "s.cuwhy"))

    def test_the_user_stops_the_diagnosis(self):
        for signo in ENDS:
            with self.subTest(signo):
                child = self.start(HELD + "leave('reruns', os.getpid())\ntime.sleep(60)", "--steps", "cpu_rerun")
                pid = int(self.left("reruns"))
                child.send_signal(signo)
                self.end(child)
                self.assertEqual(child.returncode, 1)
                self.assertEqual(self.rows("select stopped from fact_ended where name = 'cpu_rerun'"),
                                 [("interrupted",)])
                self.assertTrue(gone(pid))
                os.unlink(os.path.join(self.work, "s.cuwhy"))
                os.unlink(os.path.join(self.work, "reruns"))

    def test_a_signal_that_was_ignored_from_the_start_stops_nothing(self):
        child = self.start(HELD + "leave('reruns', os.getpid())\nwait_for('go')", "--steps", "cpu_rerun",
                           preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.left("reruns")
        child.send_signal(signal.SIGHUP)
        time.sleep(0.1)
        self.make("go")
        self.end(child)
        self.assertEqual(self.rows("select exit_status, stopped from fact_ended where name = 'cpu_rerun'"),
                         [(0, None)])

    def test_all_that_it_started_ends_with_it_and_nothing_else(self):
        child = self.start("""
def sleep():
    quiet()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)
def nest():
    daemon("inner", sleep)
    sleep()
a = agent()
if MODE == "observe":
    # A process of the user's whose parent ends while the rerun goes on.
    if os.fork() == 0:
        parent = os.getpid()
        if os.fork() == 0:
            os.setsid()
            leave("users", os.getpid())
            while os.getppid() == parent:
                time.sleep(0.01)
            leave("orphaned")
            sleep()
        wait_for("reruns")
        os._exit(0)
    wait_for("users")
    fail(a)
    say(a, "held", reason="exception")
    hear(a)
    sys.exit(1)
daemon("outer", nest)
leave("reruns", os.getpid())
wait_for("orphaned")
""", "--steps", "cpu_rerun")
        self.end(child)
        self.assertEqual(child.returncode, 1)
        for name in ("reruns", "outer", "inner"):
            self.assertTrue(gone(int(self.left(name))), name)
        users = int(self.left("users"))
        self.assertFalse(gone(users))
        os.kill(users, signal.SIGKILL)

    def test_it_never_outlives_us(self):
        child = self.start(HELD + """
def sleep():
    quiet()
    time.sleep(60)
daemon("daemon", sleep)
leave('reruns', os.getpid())
signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(60)""", "--steps", "cpu_rerun")
        pids = [int(self.left(name)) for name in ("reruns", "daemon")]
        child.kill()
        for pid in pids:
            self.until(lambda: gone(pid))
        self.end(child)  # nobody holds our pipes any more

    def test_one_that_does_not_stop(self):
        child = self.start(HELD + """
signal.signal(signal.SIGTERM, lambda *a: os.kill(os.getpid(), signal.SIGSTOP))
leave('reruns', os.getpid())
time.sleep(60)""", "--steps", "cpu_rerun", "--limit", "cpu_rerun=0.5")
        self.end(child)
        self.assertEqual(child.returncode, 1)
        self.assertEqual(self.rows("select signal, stopped from fact_ended where name = 'cpu_rerun'"),
                         [(signal.SIGKILL, "time limit")])
        self.assertTrue(gone(int(self.left("reruns"))))

    def test_endless_output_is_cut(self):
        child = self.start(HELD + """
while True:
    os.write(1, b'x' * 65535 + b'\\n')""", "--steps", "cpu_rerun")
        self.end(child, 60)
        self.assertEqual(self.rows("select stopped from fact_ended where name = 'cpu_rerun'"),
                         [("it printed more than 64 MiB",)])
        self.assertEqual(self.rows("select sum(length(bytes)) from output where run = 1"), [(64 << 20,)])


class Pipes(Live):
    def test_the_program_learns_that_its_reader_is_gone(self):
        child = self.start("""
leave("ready")
wait_for("go")
time.sleep(0.1)
try:
    os.write(1, b"x")
except BrokenPipeError:
    os.write(2, b"still heard")
    sys.exit(9)
""")
        self.left("ready")
        child.stdout.close()
        self.make("go")
        self.assertEqual(child.stderr.read(), b"still heard")
        child.stderr.close()
        self.assertEqual(child.wait(20), 9)

    def test_it_dies_of_it_as_it_would_have(self):
        child = self.start("signal.signal(signal.SIGPIPE, signal.SIG_DFL)\nwhile True: os.write(1, b'y\\n' * 100)")
        child.stdout.read(100)
        child.stdout.close()
        child.stderr.close()
        self.assertEqual(child.wait(20), 128 + signal.SIGPIPE)

    def test_signals_and_agents_while_our_output_is_full(self):
        child = self.start("""
signal.signal(signal.SIGUSR1, lambda *a: leave("signalled"))
a = agent()
threading.Thread(target=lambda: [os.write(1, b"x" * 1000) for _ in range(1000)]).start()
time.sleep(0.2)
leave("ready")
while not os.path.exists("signalled"):
    time.sleep(0.01)
say(a, "held", reason="exit")
leave("answer", hear(a))
""")
        self.left("ready")
        child.send_signal(signal.SIGUSR1)
        self.left("signalled")
        self.assertEqual(self.left("answer"), "release")
        self.assertEqual(len(self.end(child)[0]), 1000000)
        self.assertEqual(child.returncode, 0)

    def test_signals_while_our_terminal_is_stopped(self):
        ours, theirs = pty.openpty()
        child = self.start("""
signal.signal(signal.SIGUSR1, lambda *a: leave("signalled"))
threading.Thread(target=lambda: [os.write(1, b"x" * 1000) for _ in range(1000)], daemon=True).start()
time.sleep(0.3)
leave("ready", os.isatty(1))
while not os.path.exists("signalled"):
    time.sleep(0.01)
os._exit(2)
""", stdout=theirs)
        self.assertEqual(self.left("ready"), "True")
        child.send_signal(signal.SIGUSR1)
        self.left("signalled")
        os.close(theirs), os.close(ours)  # a terminal that hangs up takes no more
        self.end(child)
        self.assertEqual(child.returncode, 2)

    def full(self):
        """A run that has ended while our output was full."""
        child = self.start("""
os.write(1, b'x' * 100000)
os.write(1, b'y' * 20000)
leave("ends", os.getpid())
sys.exit(4)
""")
        self.until(lambda: gone(int(self.left("ends"))))
        return child

    def test_what_is_printed_last_waits_for_its_reader(self):
        child = self.full()
        self.assertIsNone(child.poll())
        self.assertEqual(self.end(child)[0], b"x" * 100000 + b"y" * 20000)
        self.assertEqual(child.returncode, 4)

    def test_a_full_disk_loses_the_output_only(self):
        with open("/dev/full", "wb") as full:
            child = self.start("os.write(1, b'x')\nos.write(1, b'y')\nsys.exit(4)", stdout=full)
        self.end(child)
        self.assertEqual(child.returncode, 4)
        self.assertEqual(self.rows("select sum(length(bytes)) from output where stream = 1"), [(2,)])

    def test_a_signal_ends_that_waiting(self):
        child = self.full()
        child.send_signal(signal.SIGTERM)
        self.assertEqual(child.wait(20), 4)
        self.end(child)

    def test_a_daemon_learns_that_its_reader_is_gone(self):
        child = self.start("""
def write():
    wait_for("go")
    try:
        while True:
            os.write(1, b"x" * 1000)
    except BrokenPipeError:
        leave("broken")
daemon("daemon", write)
""")
        self.assertEqual(child.wait(20), 0)
        child.stdout.close()
        self.make("go")
        self.left("broken")
        child.stderr.close()

    def test_ignored_signals_are_the_programs(self):
        def ignore():
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        code = "for line in open('/proc/self/status'):\n    if line[:3] == 'Sig': print(line, end='')\n"
        for before in (ignore, None):
            plain = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, preexec_fn=before).stdout
            child = self.start(code + "sys.stdout.flush()\nos._exit(3)", preexec_fn=before)
            self.assertEqual(self.end(child)[0].splitlines()[1:], plain.splitlines()[1:])  # SigQ is the user's
            self.assertEqual(child.returncode, 3)
            os.unlink(os.path.join(self.work, "s.cuwhy"))


if __name__ == "__main__":
    tap.main()
