"""Mode `redirect`: everything says CUDA, the CPU does it all, and mismatches of devices are found."""
import copy
import io
import os
import pickle
import subprocess
import sys
import threading
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "programs")
sys.path[:0] = [HERE, PROGRAMS]
import tap

try:
    import numpy
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
    import torch.fx
except ImportError:
    torch = None

if torch:
    import redirect_run


class Found(Exception):
    pass


NOTES = []
NEW = torch is not None and hasattr(torch, "compile")


def finding(**fields):
    raise Found(fields["op"].rpartition(".")[2], fields["role"])


def install():
    redirect = redirect_run.load()
    redirect.install(lambda event, **fields: NOTES.append(fields["text"]), finding)
    return redirect


def run(program, *options, **env):
    argv = [sys.executable, "-W", "ignore"] + list(options) + [os.path.join(PROGRAMS, program)]
    done = subprocess.run(argv, env=dict(os.environ, OMP_NUM_THREADS="1", **env), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    return done.stdout.decode(), done.stderr.decode()


def place(value):
    return str(value.device)


class Base(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.c, self.h = torch.randn(3, 4).cuda(), torch.randn(3, 4)

    def each(self, cases, wanted):
        for name, make in cases.items():
            with self.subTest(name):
                self.assertEqual(place(make()), wanted)

    def refused(self, op, role, call):
        with self.subTest(op + " " + role):
            with self.assertRaises(Found) as caught:
                call()
            self.assertEqual(caught.exception.args, (op, role))


class Devices(Base):
    def test_results_are_where_their_operands_are(self):
        c = self.c
        self.each({
            "add": lambda: c + 1, "rsub": lambda: 1 - c, "rpow": lambda: 2 ** c, "view": lambda: c.view(4, 3),
            "T": lambda: c.T, "item": lambda: c[0], "mask": lambda: c[c > 0], "data": lambda: c.data,
            "iter": lambda: next(iter(c)), "cat": lambda: torch.cat([c, c]), "matmul": lambda: c @ c.t(),
            "like": lambda: torch.zeros_like(c), "new": lambda: c.new_zeros(3), "max": lambda: c.max(1)[1],
            "einsum": lambda: torch.einsum("ij,ij->i", c, c), "ops": lambda: torch.ops.aten.mul.Tensor(c, 2),
            "fft": lambda: torch.fft.fft(c), "svd": lambda: torch.linalg.svd(c)[0], "half": lambda: c.half(),
            "sparse": lambda: c.to_sparse(), "dense": lambda: c.to_sparse().to_dense(),
            "parameter": lambda: nn.Parameter(c), "deepcopy": lambda: copy.deepcopy(c),
            "block_diag": lambda: torch.block_diag(c, c), "tensor": lambda: torch.tensor(c),
            "pickle": lambda: pickle.loads(pickle.dumps(c)), "split": lambda: c.split(2)[0],
            "out": lambda: torch.add(c, c, out=torch.empty(3, 4, device="cuda"))}, "cuda:0")

    def test_every_way_of_saying_cuda(self):
        h = self.h
        self.each({
            "cuda": lambda: h.cuda(0, non_blocking=True), "string": lambda: h.to("cuda"),
            "int": lambda: h.to(0),
            "device": lambda: h.to(torch.device("cuda:0"), copy=True),
            "dtype": lambda: h.to("cuda", torch.half),
            "keywords": lambda: h.to(device="cuda", dtype=torch.double), "other": lambda: h.to(self.c),
            "type": lambda: h.type("torch.cuda.LongTensor"), "type_as": lambda: h.type_as(self.c),
            "legacy": lambda: torch.cuda.FloatTensor([1, 2]), "zeros": lambda: torch.zeros(2, device="cuda"),
            "number": lambda: torch.ones(2, device=0), "tensor": lambda: torch.tensor([1], device="cuda"),
            "randperm": lambda: torch.randperm(3, device="cuda"),
            "like": lambda: torch.rand_like(h, device="cuda"),
            "as_tensor": lambda: torch.as_tensor(h, device="cuda"),
            "eye": lambda: torch.eye(2, device="cuda"),
            "numpy": lambda: torch.as_tensor(numpy.zeros(2), device="cuda"),
            "window": lambda: torch.hann_window(4, device="cuda"),
            "normal": lambda: torch.normal(0.0, 1.0, (2,), device="cuda"),
            "module": lambda: nn.Linear(2, 2).to(0).weight, "as": lambda: nn.Linear(2, 2).to(self.c).weight,
            "made": lambda: nn.Linear(2, 2, device="cuda").weight,
            "generator": lambda: torch.rand(2, device="cuda", generator=torch.Generator("cuda"))}, "cuda:0")
        self.assertEqual(place(h), "cpu")
        self.assertEqual(place(torch.zeros(1, device="cuda:1")), "cuda:1")
        self.assertEqual(torch.device(0), torch.device("cuda:0"))

    def test_the_cpu_stays(self):
        c, h = self.c, self.h
        self.each({
            "cpu": lambda: c.cpu(), "to": lambda: c.to("cpu"), "zeros": lambda: torch.zeros(2),
            "from_numpy": lambda: torch.from_numpy(numpy.zeros(2)), "Tensor": lambda: torch.Tensor([1]),
            "legacy": lambda: torch.FloatTensor([1]), "list": lambda: torch.tensor([c[0, 0], c[0, 1]]),
            "type": lambda: c.type("torch.FloatTensor"), "like": lambda: torch.zeros_like(c, device="cpu"),
            "pinned": lambda: h.pin_memory()}, "cpu")
        self.assertTrue(h.pin_memory().is_pinned())

    def test_moves_are_copies(self):
        c, h = self.c, self.h
        self.assertIs(c.cuda(), c)
        self.assertIs(h.to("cpu"), h)
        h.cuda().zero_()
        c.cpu().zero_()
        self.assertTrue(h.any() and c.any())

    def test_answers_about_a_tensor(self):
        c, h = self.c, self.h
        self.assertTrue(c.is_cuda and not c.is_cpu and c.get_device() == 0 and h.get_device() == -1)
        self.assertEqual((c.type(), h.type()), ("torch.cuda.FloatTensor", "torch.FloatTensor"))
        self.assertTrue(isinstance(c, torch.cuda.FloatTensor) and not isinstance(c, torch.FloatTensor))
        self.assertIn("device='cuda:0'", repr(c))
        self.assertNotIn("device", repr(h))
        for convert in (lambda: c.numpy(), lambda: numpy.asarray(c)):
            with self.assertRaisesRegex(TypeError, "can't convert cuda:0 device type tensor to numpy. Use"):
                convert()

    def test_lists_of_tensors(self):
        one, two = torch.tensor(1.0), torch.tensor(2)
        self.assertEqual(torch.tensor([[two, 3], [4, two]]).tolist(), [[2, 3], [4, 2]])
        self.assertEqual(torch.tensor([one, two]).dtype, torch.float32)
        self.assertEqual(torch.Tensor([one]).tolist(), [1.0])
        with self.assertRaises(ValueError):
            torch.tensor([self.h[0], self.h[1]])

    def test_modules_move_in_place(self):
        net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
        before = [id(one) for one in net.parameters()]
        optimizer = torch.optim.Adam(net.parameters())
        net.cuda()
        self.assertEqual([id(one) for one in net.parameters()], before)
        self.assertEqual({place(one) for one in list(net.parameters()) + list(net.buffers())}, {"cuda:0"})
        net(self.c).sum().backward()
        optimizer.step()
        self.assertEqual(place(net[0].weight.grad), "cuda:0")
        self.assertTrue(all(place(state["exp_avg"]) == "cuda:0" for state in optimizer.state.values()))
        self.assertEqual(place(net.cpu()[0].weight.grad), "cpu")

    def test_backward(self):
        seen = []

        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                seen.extend([place(grad), place(ctx.saved_tensors[0])])
                return grad * 2 + torch.zeros(grad.shape, device=grad.device)
        x = self.c.clone().requires_grad_()
        y = Double.apply(x)
        y.register_hook(lambda grad: seen.append(place(grad)))
        y.sum().backward()
        seen += [place(x.grad), place(torch.autograd.grad(Double.apply(x).sum(), x)[0])]
        self.assertEqual(set(seen), {"cuda:0"})

    def test_nothing_of_ours_is_kept(self):
        net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).cuda()
        net.activation = torch.tanh
        for data in (pickle.dumps(self.c), pickle.dumps(net)):
            self.assertNotIn(b"cuwhy", data)
        self.assertEqual(vars(self.c), {})

    def test_what_is_saved_inside_an_operation(self):
        from torch.utils.checkpoint import checkpoint
        net = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 2)).cuda()
        checkpoint(net, self.c, use_reentrant=False).sum().backward()
        seen = set()
        with torch.autograd.graph.saved_tensors_hooks(lambda one: seen.add(str(one.device)) or one,
                                                      lambda one: one):
            net(self.c)
            self.assertEqual(seen, {"cuda:0"})
            seen.clear()
            nn.LayerNorm(4)(self.h)
        self.assertEqual(seen, {"cpu"})

    def test_lazy_modules(self):
        lazy = nn.LazyLinear(3).to("cuda")
        self.assertEqual(place(lazy(self.c)), "cuda:0")

    def test_checkpoints(self):
        file = io.BytesIO()
        torch.save({"c": self.c, "h": self.h}, file)
        all_cuda, all_cpu = ("cuda:0", "cuda:0"), ("cpu", "cpu")
        for location, wanted in ((None, ("cuda:0", "cpu")), ("cpu", all_cpu), ("cuda", all_cuda),
                                 (torch.device("cuda:0"), all_cuda), ({"cuda:0": "cpu"}, all_cpu),
                                 (lambda storage, where: storage, all_cpu),
                                 (lambda storage, where: storage.cuda(0), all_cuda)):
            file.seek(0)
            state = torch.load(file, map_location=location)
            self.assertEqual((place(state["c"]), place(state["h"])), wanted)

    def test_dead_storages_are_forgotten(self):
        logical = sys.modules["cuwhy_agent.logical"]
        for _ in range(3 * logical.SWEEP_FIRST):
            self.c + 1
        self.assertLessEqual(len(logical._devices), 2 * logical.SWEEP_FIRST)

    def test_threads(self):
        seen = []
        thread = threading.Thread(target=lambda: seen.append(place(self.c * 2)))
        thread.start()
        thread.join()
        self.assertEqual(seen, ["cuda:0"])

    @unittest.skipUnless(NEW, "from PyTorch 2 on")
    def test_default_device(self):
        with torch.device("cuda"):
            self.each({"ones": lambda: torch.ones(1), "tensor": lambda: torch.tensor([1]),
                       "as_tensor": lambda: torch.as_tensor(self.h),
                       "module": lambda: nn.Linear(2, 2).weight}, "cuda:0")
        self.assertEqual(place(torch.ones(1)), "cpu")
        torch.set_default_device("cuda")
        self.assertEqual(place(torch.ones(1)), "cuda:0")
        torch.set_default_device(None)

    def test_default_tensor_type(self):
        torch.set_default_tensor_type("torch.cuda.FloatTensor")
        self.assertEqual(place(torch.ones(1)), "cuda:0")
        torch.set_default_tensor_type(torch.FloatTensor)
        self.assertEqual(place(torch.ones(1)), "cpu")


class Mismatches(Base):
    def test_are_found(self):
        c, h, three, hidden = self.c, self.h, torch.tensor([0, 1, 2]), torch.zeros(1, 3, 2)
        rows = [
            ("add", "other", lambda: c + h), ("add", "self", lambda: h + c),
            ("mul_", "other", lambda: c.mul_(h)),
            ("add_", "self", lambda: torch.tensor(0.0).__iadd__(c.sum())),
            ("matmul", "other", lambda: c @ h.t()),
            ("mm", "self", lambda: torch.mm(h, c.t())), ("eq", "other", lambda: c.argmax(1) == three),
            ("linear", "input", lambda: nn.Linear(4, 2).cuda()(h)),
            ("linear", "weight", lambda: nn.Linear(4, 2)(c)),
            ("conv2d", "input", lambda: nn.Conv2d(1, 1, 2).cuda()(h[None, None])),
            ("cross_entropy", "target", lambda: F.cross_entropy(c, three)),
            ("nll_loss", "target", lambda: F.nll_loss(c, three)),
            ("mse_loss", "target", lambda: F.mse_loss(c, h)),
            ("binary_cross_entropy", "target", lambda: F.binary_cross_entropy(c.sigmoid(), h.sigmoid())),
            ("embedding", "input", lambda: nn.Embedding(4, 2).cuda()(three)),
            ("cat", "tensors", lambda: torch.cat([c, h])), ("stack", "tensors", lambda: torch.stack([c, h])),
            ("where", "condition", lambda: torch.where(h > 0, c, c)),
            ("LSTM", "hx", lambda: nn.LSTM(4, 2).cuda()(c[None], (hidden, hidden))),
            ("GRU", "hx", lambda: nn.GRU(4, 2).cuda()(c[None], hidden)),
            ("masked_fill", "mask", lambda: c.masked_fill(h > 0, 0.0)),
            ("index", "index", lambda: h[three.cuda()]),
            ("gather", "index", lambda: c.gather(1, three[:, None])),
            ("batch_norm", "input", lambda: nn.BatchNorm1d(4).cuda()(h)),
            ("index_put_", "values", lambda: c.__setitem__(c > 0, torch.ones(int((c > 0).sum())))),
            ("grad", "grad", lambda: setattr(nn.Parameter(c), "grad", h)),
            ("pack_padded_sequence", "lengths",
             lambda: nn.utils.rnn.pack_padded_sequence(c[None], torch.tensor([3]).cuda(), batch_first=True)),
            ("add", "other", lambda: torch.no_grad()(lambda: c + h)()),
            ("add", "other", lambda: c + c.to("cuda:1")),
        ]
        for row in rows:
            self.refused(*row)

    def test_what_cuda_allows(self):
        c, h = self.c, self.h
        packed = nn.utils.rnn.pack_padded_sequence(c[None], torch.tensor([3]), batch_first=True)
        for name, call in {
                "scalar": lambda: c + torch.tensor(2.0), "scalar first": lambda: torch.tensor(2.0) * c,
                "copy": lambda: c.clone().copy_(h), "indices": lambda: c[torch.tensor([0, 1])],
                "mask": lambda: c[h > 0], "number": lambda: h[torch.tensor(1).cuda()],
                "slice": lambda: c.clone().__setitem__(slice(0, 2), h[:2]),
                "assigned scalar": lambda: c.clone().__setitem__(c > 0, torch.tensor(0.0)),
                "expand": lambda: h[:1].expand_as(c), "view": lambda: h.view_as(c),
                "fill": lambda: c.clone().fill_(torch.tensor(1.0)),
                "empty": lambda: torch.cat([torch.tensor([]), c[0]]),
                "data": lambda: setattr(nn.Parameter(h), "data", c),
                "packed": lambda: nn.LSTM(4, 2, batch_first=True).cuda()(packed),
                "where": lambda: torch.where(c > 0, c, torch.tensor(0.0)),
                "load": lambda: nn.Linear(4, 2).cuda().load_state_dict(nn.Linear(4, 2).state_dict())}.items():
            with self.subTest(name):
                call()

    def test_inside_backward(self):
        class Mixed(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 1

            @staticmethod
            def backward(ctx, grad):
                return ctx.saved_tensors[0] * torch.ones(3, 4)
        with self.assertRaises(Found):
            Mixed.apply(self.c.clone().requires_grad_()).sum().backward()

    def test_what_cuda_raises(self):
        operators = sys.modules["cuwhy_agent.operators"]
        operators._finding = lambda **fields: None
        try:
            with self.assertRaisesRegex(RuntimeError, "Expected all tensors to be on the same device"):
                self.c + self.h
            with self.assertRaisesRegex(RuntimeError, r"on the same device as the indexed tensor \(cpu\)"):
                self.h[self.c > 0]
        finally:
            operators._finding = finding


class Answers(Base):
    def test_queries(self):
        cuda = torch.cuda
        self.assertTrue(cuda.is_available() and cuda.is_initialized() and torch.backends.cuda.is_built())
        self.assertEqual((cuda.device_count(), cuda.current_device()), (1, 0))
        self.assertEqual(cuda.get_device_capability(), (8, 0))
        self.assertIn("answered with the CPU", cuda.get_device_name(0))
        self.assertEqual(cuda.get_device_properties("cuda").total_memory, cuda.mem_get_info()[1])
        self.assertEqual(cuda.memory_allocated() + cuda.max_memory_reserved(0), 0)
        self.assertTrue(torch.version.cuda and cuda.is_bf16_supported())
        self.assertFalse(cuda.is_current_stream_capturing())
        cuda.set_rng_state(cuda.get_rng_state())
        for nothing in (cuda.synchronize, cuda.empty_cache, cuda.init, cuda.ipc_collect):
            nothing()

    def test_memory_statistics(self):
        self.assertEqual(torch.cuda.memory_stats()["allocated_bytes.all.peak"], 0)

    def test_names_in_words(self):
        here, there = self.h, self.c
        told = []
        operators = sys.modules["cuwhy_agent.operators"]
        old = operators._finding
        operators._finding = lambda **fields: told.append(fields["detail"])
        try:
            for call in (lambda: there + here, lambda: here[there.argmax(1)]):
                self.assertRaises(RuntimeError, call)
        finally:
            operators._finding = old
        self.assertEqual(told, ["here is on cpu while there is on cuda:0",
                                "there.argmax(1) is on cuda:0 while here is on cpu"])

    def test_streams_and_events(self):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        stream = torch.cuda.Stream()
        begin.record()
        with torch.cuda.stream(stream), torch.cuda.device(0), torch.cuda.nvtx.range("x"):
            self.c.record_stream(stream)
        stream.wait_stream(torch.cuda.current_stream())
        end.record()
        end.synchronize()
        self.assertGreaterEqual(begin.elapsed_time(end), 0)

    def test_what_no_cpu_can_do_is_named(self):
        import torch.utils.cpp_extension
        for text, call in (("CUDAGraph", torch.cuda.CUDAGraph),
                           ("my_kernels", lambda: torch.utils.cpp_extension.load("my_kernels", ["my.cu"]))):
            with self.assertRaisesRegex(RuntimeError, text + " cannot run on a CPU"):
                call()
            self.assertTrue(any(text in note for note in NOTES))

    def test_low_precision(self):
        net = nn.Sequential(nn.Conv1d(3, 4, 1), nn.ReLU(), nn.Linear(4, 4), nn.LayerNorm(4))
        for dtype in (torch.float16, torch.bfloat16):
            net.to("cuda", dtype)(self.c[None].to(dtype)).sum().backward()
            net.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            nn.Linear(4, 2).cuda()(self.c.half())

    def test_torchscript_and_fx(self):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 2)
                self.rnn = nn.LSTM(2, 2)

            def forward(self, x):
                return F.softmax(self.rnn(torch.relu(self.layer(x)).unsqueeze(0))[0], -1)
        net = Net().cuda()
        for made in (torch.jit.script(net), torch.jit.trace(net, self.c)):
            self.assertEqual(place(made(self.c)), "cuda:0")
        traced = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(4, 2), nn.GELU()).cuda())
        self.assertEqual(place(traced(self.c)), "cuda:0")

    def test_subclasses_know_the_functions(self):
        class Counted(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                if func in {torch.mean: 1}:
                    return 42
                return super().__torch_function__(func, types, args, kwargs or {})
        self.assertEqual(torch.mean(self.c.as_subclass(Counted)), 42)

    def test_functions_do_not_become_methods(self):
        class Net(nn.Module):
            activation = torch.tanh
        self.assertEqual(place(Net().activation(self.c)), "cuda:0")

    @unittest.skipUnless(NEW, "from PyTorch 2 on")
    def test_compiled_code_runs_uncompiled(self):
        self.assertEqual(place(torch.compile(nn.Linear(4, 2).cuda())(self.c)), "cuda:0")
        self.assertEqual(place(torch.compile(mode="max-autotune")(lambda x: x + 1)(self.c)), "cuda:0")
        self.assertIn("compiled code was run uncompiled", NOTES)

    @unittest.skipUnless(NEW, "from PyTorch 2 on")
    def test_function_transforms(self):
        self.assertEqual(place(torch.func.vmap(lambda x: x * 2 + self.c[0])(self.c)), "cuda:0")
        self.assertEqual(place(torch.func.grad(lambda x: (x * self.c).sum())(self.c)), "cuda:0")


class Programs(unittest.TestCase):
    def test_numbers_are_those_of_the_cpu(self):
        plain, error = run("redirect_train.py", DEVICE="cpu")
        self.assertEqual(len(plain.splitlines()), 6, error)
        redirected, error = run("redirect_train.py", os.path.join(PROGRAMS, "redirect_run.py"), DEVICE="cuda")
        self.assertEqual(redirected, plain, error)

    def test_nccl(self):
        port = str(free_port())
        out, error = run("redirect_ddp.py", os.path.join(PROGRAMS, "redirect_run.py"), MASTER_PORT=port)
        self.assertEqual(out, "nccl cuda:0 True\n", error)

    def test_another_process(self):
        out, error = run("redirect_spawn.py")
        self.assertEqual(out, "cuda:0 cpu cuda:0 Parameter True 3\n", error)


def free_port():
    import socket
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def setUpModule():
    if torch is None:
        raise unittest.SkipTest("needs PyTorch and numpy")
    install()


if __name__ == "__main__":
    tap.main()
