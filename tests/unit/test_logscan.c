/*
 * logscan: one row a form of log, the same facts however the bytes are cut, and bounds.
 *
 * A fact is written as one line, unknown parts left empty:
 *   A source|kernel|condition|form|rank|count|blocks|threads|text   (as last told)
 *   F type|text|code|rank|late
 *   T type|text|rank then one " > file:line function: code" a frame
 *   R rank
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <cmocka.h>

#include "capture/logscan.h"

enum { MAX_ASSERTIONS = 256 };

struct seen {
	struct buf facts; /* failures, tracebacks and ranks in order */
	struct buf assertions[MAX_ASSERTIONS];
	struct assertion last[MAX_ASSERTIONS];
	int64_t count;
};

static void add_int(struct buf *b, int64_t v)
{
	if (v != INT_UNKNOWN)
		buf_fmt(b, "%lld", (long long)v);
	buf_chr(b, '|');
}

static void add_text(struct buf *b, const char *text)
{
	buf_fmt(b, "%s|", text ? text : "");
}

static void on_assertion(void *user, const struct assertion *a)
{
	struct seen *s = user;
	struct buf *b = &s->assertions[a->id];

	assert_true(a->id >= 0 && a->id < MAX_ASSERTIONS && a->id <= s->count);
	if (a->id == s->count)
		s->count++;
	else
		record_done(&assertion_record, &s->last[a->id]);
	record_copy(&assertion_record, &s->last[a->id], a);
	b->len = 0;
	buf_str(b, "A ");
	add_text(b, a->source);
	add_text(b, a->kernel);
	add_text(b, a->condition);
	add_text(b, a->form);
	add_int(b, a->rank);
	add_int(b, a->count);
	add_int(b, a->blocks);
	add_int(b, a->threads);
	buf_fmt(b, "%s\n", a->text ? a->text : "");
}

static void on_failure(void *user, const struct failure *f)
{
	struct seen *s = user;

	buf_str(&s->facts, "F ");
	add_text(&s->facts, f->type);
	add_text(&s->facts, f->text);
	add_int(&s->facts, f->code);
	add_int(&s->facts, f->rank);
	buf_str(&s->facts, f->late ? "late\n" : "\n");
}

static void on_traceback(void *user, const struct traceback *t)
{
	struct seen *s = user;
	const struct place *frames = t->frames.v;

	buf_fmt(&s->facts, "T %s|%s|", t->type ? t->type : "", t->text ? t->text : "");
	if (t->rank != INT_UNKNOWN)
		buf_fmt(&s->facts, "%lld", (long long)t->rank);
	for (size_t i = 0; i < t->frames.n; i++) {
		buf_fmt(&s->facts, " > %s:", frames[i].file ? frames[i].file : "");
		if (frames[i].line != INT_UNKNOWN)
			buf_fmt(&s->facts, "%lld", (long long)frames[i].line);
		buf_fmt(&s->facts, " %s: %s", frames[i].function ? frames[i].function : "",
			frames[i].code ? frames[i].code : "");
	}
	buf_chr(&s->facts, '\n');
}

static void on_rank(void *user, int64_t rank)
{
	struct seen *s = user;

	buf_fmt(&s->facts, "R %lld\n", (long long)rank);
}

static struct logscan *start(struct seen *s)
{
	struct logscan_sink sink = {s, on_assertion, on_failure, on_traceback, on_rank};

	*s = (struct seen){.count = 0};
	return logscan_new(&sink);
}

/* All facts as text; caller frees. */
static char *end(struct seen *s, struct logscan *scan)
{
	struct buf all = {0};

	logscan_finish(scan);
	logscan_free(scan);
	for (int64_t i = 0; i < s->count; i++) {
		buf_str(&all, s->assertions[i].data);
		buf_done(&s->assertions[i]);
		record_done(&assertion_record, &s->last[i]);
	}
	buf_add(&all, s->facts.data, s->facts.len);
	buf_done(&s->facts);
	return buf_take(&all);
}

/* Chunks of `chunk` bytes, or of a random size when 0. */
static char *facts_of(const char *bytes, size_t len, size_t chunk)
{
	struct seen seen;
	struct logscan *scan = start(&seen);
	unsigned seed = 1;

	for (size_t at = 0, n; at < len; at += n) {
		n = chunk ? chunk : 1 + (size_t)rand_r(&seed) % (seed & 64 ? 5000 : 50);
		n = n < len - at ? n : len - at;
		logscan_feed(scan, 0, bytes + at, n);
	}
	return end(&seen, scan);
}

#define AT(line, thread, tail) \
	"/pytorch/aten/src/ATen/native/cuda/Loss.cu:" line ": nll: block: [0,0,0], thread: [" thread ",0,0] " tail "\n"
#define LOSS "aten/src/ATen/native/cuda/Loss.cu:"
#define HERE "k.cu:9: k: block: [1,0,0], thread: [2,0,0] Assertion "
#define TRACE "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\n"
#define TOLD "a.py:3 f: g()"

#define FORM(name, text, facts) {name, text, sizeof(text) - 1, facts}

static const struct form {
	const char *name, *text;
	size_t len; /* of text, which may hold NUL */
	const char *facts;
} forms[] = {
	FORM("nvcc, bare name",
		AT("257", "4", "Assertion `t >= 0 && t < n_classes` failed.")
		AT("257", "5", "Assertion `t >= 0 && t < n_classes` failed."),
		"A " LOSS "257|nll|t >= 0 && t < n_classes|cuda||2|1|2|\n"),
	FORM("full signature",
		"/opt/conda/conda-bld/pytorch_15/work/torch/lib/THCUNN/X.cu:40: void cunn_X_kernel(T "
		"*, long *, int) [with T = float, AccumT = float]: block: [0,0,0], thread: [49,0,0] "
		"Assertion `t >= 0` failed.\n",
		"A torch/lib/THCUNN/X.cu:40|cunn_X_kernel|t >= 0|cuda||1|1|1|\n"),
	FORM("signature in namespaces",
		"/a/aten/src/M.cu:1: void at::native::<unnamed>::sampleOnce(long *, scalar_t *) [with "
		"scalar_t = float]: block: [5,0,0], thread: [0,1,0] Assertion `val >= zero` failed.\n",
		"A aten/src/M.cu:1|sampleOnce|val >= zero|cuda||1|1|1|\n"),
	FORM("signature in (anonymous namespace)",
		"M.cu:1: void at::(anonymous namespace)::once<float, 3>(long *): block: [5,0,0], "
		"thread: [0,0,0] Assertion `v` failed.\n",
		"A M.cu:1|once|v|cuda||1|1|1|\n"),
	FORM("functor",
		"B.cu:30: Acctype bce_functor<Dtype, Acctype>::operator()(Tuple) [with Tuple = "
		"thrust::tuple<float, thrust::null_type>, Dtype = float]: block: [16,0,0], thread: "
		"[26,0,0] Assertion `input >= 0. && input <= 1.` failed.\n",
		"A B.cu:30|bce_functor::operator()|input >= 0. && input <= 1.|cuda||1|1|1|\n"),
	FORM("lambda",
		"I.cu:53: lambda [](int)->auto::operator()(int)->auto: block: [0,0,0], thread: "
		"[32,0,0] Assertion `index < sizes[i] && \"index out of bounds\"` failed.\n",
		"A I.cu:53|operator()|index < sizes[i] && \"index out of bounds\"|cuda||1|1|1|\n"),
	FORM("Windows, no function",
		"C:\\actions-runner\\_work\\pytorch\\builder\\windows\\pytorch\\aten\\src\\ATen\\n"
		"ative\\cuda\\NLLLoss2d.cu:106: block: [4,0,0], thread: [580,0,0] Assertion `t >= 0` "
		"failed.\r\n",
		"A aten/src/ATen/native/cuda/NLLLoss2d.cu:106||t >= 0|windows||1|1|1|\n"),
	FORM("Windows, mixed slashes behind a bar",
		"30%|\xe2\x96\x88\xe2\x96\x89 | 3/9 [00:56<02:08, "
		"C:/cb/work\\c10/core/DynamicCast.h:78: block: [38,0,0], thread: [96,0,0] Assertion "
		"`false` failed.\n",
		"A c10/core/DynamicCast.h:78||false|windows||1|1|1|\n"),
	FORM("no root in the path",
		"D:\\ext\\op.cu:7: block: [0,0,0], thread: [1,0,0] Assertion `n` failed.\n",
		"A D:/ext/op.cu:7||n|windows||1|1|1|\n"),
	FORM("condition with quotes",
		HERE "`cumdist[size - 1] > 0 && \"tensor contains either `inf`, `nan` or element < 0\"` "
		"failed.\n",
		"A k.cu:9|k|cumdist[size - 1] > 0 && \"tensor contains either `inf`, `nan` or element "
		"< 0\"|cuda||1|1|1|\n"),
	FORM("empty message", HERE "`` failed.\n", "A k.cu:9|k||cuda||1|1|1|\n"),
	FORM("back-ticks lost",
		HERE "t >= 0 && \"out of bounds\" failed.\n",
		"A k.cu:9|k|t >= 0 && \"out of bounds\"|cuda||1|1|1|\n"),
	FORM("opening back-tick lost", HERE "t >= 0` failed.\n", "A k.cu:9|k|t >= 0|cuda||1|1|1|\n"),
	FORM("closing back-tick lost", HERE "`t >= 0 failed.\n", "A k.cu:9|k|t >= 0|cuda||1|1|1|\n"),
	FORM("quotes for back-ticks", HERE "'t >= 0' failed.\n", "A k.cu:9|k|t >= 0|cuda||1|1|1|\n"),
	FORM("curly quotes", HERE "\u2018t >= 0\u2019 failed.\n", "A k.cu:9|k|t >= 0|cuda||1|1|1|\n"),
	FORM("entities",
		HERE "`t &gt;= 0 &amp;&amp; t &lt; n &amp;&amp; &quot;x&quot;` failed.\n"
		HERE "&#x27;t &gt;= 0 &amp;&amp; t &lt; n &amp;&amp; &#34;x&#34;&#39; failed.\n",
		"A k.cu:9|k|t >= 0 && t < n && \"x\"|cuda||2|1|1|\n"),
	FORM("entities twice", HERE "`a &amp;lt; b` failed.\n", "A k.cu:9|k|a < b|cuda||1|1|1|\n"),
	FORM("code element", HERE "<code>t</code> failed.\n", "A k.cu:9|k|t|cuda||1|1|1|\n"),
	FORM("behind a bar",
		"  0%|  | 0/5 [00:00<?, ?it/s]" AT("7", "0", "Assertion `t` failed."),
		"A " LOSS "7|nll|t|cuda||1|1|1|\n"),
	FORM("behind a carriage return",
		"  0%|  | 0/5\r 20%|  | 1/5\r" AT("7", "0", "Assertion `t` failed."),
		"A " LOSS "7|nll|t|cuda||1|1|1|\n"),
	FORM("behind cursor movement",
		"3/9 [00:02<3, 1it/s]\033[A" AT("7", "0", "Assertion `t` failed."),
		"A " LOSS "7|nll|t|cuda||1|1|1|\n"),
	FORM("colours",
		"\033[1;31m/pytorch/aten/src/K.cu:7\033[0m: k: block: [0,0,0], thread: [1,0,0] "
		"Assertion `\033[4mt\033[24m` failed.\n",
		"A aten/src/K.cu:7|k|t|cuda||1|1|1|\n"),
	FORM("colours without their escape byte",
		"[1;31m/pytorch/aten/src/K.cu:7[0m: k: block: [0,0,0], thread: [1,0,0] Assertion `t` "
		"failed.\n",
		"A aten/src/K.cu:7|k|t|cuda||1|1|1|\n"),
	FORM("text behind it", HERE "`t` failed.        [45/1009]\n", "A k.cu:9|k|t|cuda||1|1|1|\n"),
	FORM("two in a line",
		HERE "`t` failed." HERE "`u` failed.\n",
		"A k.cu:9|k|t|cuda||1|1|1|\n"
		"A k.cu:9|k|u|cuda||1|1|1|\n"),
	FORM("an error glued to it",
		HERE "`t` failed.RuntimeError: CUDA error: device-side assert triggered\n",
		"A k.cu:9|k|t|cuda||1|1|1|\n"
		"F RuntimeError|CUDA error: device-side assert triggered|||\n"),
	FORM("cut off",
		AT("7", "0", "Assertion `t >= 0` failed.")
		"/pytorch/aten/src/ATen/native/cuda/Loss.cu:7: nll: block: [0,0,0], thread: [1,0,0] "
		"Assertion `t >",
		"A " LOSS "7|nll|t >= 0|cuda||2|1|2|\n"),
	FORM("cut off, nothing else",
		"/pytorch/aten/src/ATen/native/cuda/Loss.cu:7: nll: block: [0,0,0], thread: [1,0,0] "
		"Assertion `t >",
		"A " LOSS "7|nll|t >|cuda||1|1|1|\n"),
	FORM("cut off before the condition",
		AT("7", "0", "Assertion `t >= 0` failed.")
		"/pytorch/aten/src/ATen/native/cuda/Loss.cu:7: nll: block: [0,0,0], thr",
		"A " LOSS "7|nll|t >= 0|cuda||1|1|1|\n"),
	FORM("same twice",
		HERE "`t` failed.\n"
		HERE "`t` failed.\n"
		HERE "`t` failed.\n",
		"A k.cu:9|k|t|cuda||3|1|1|\n"),
	FORM("other types, same kernel",
		"k.cu:1: void k(T *) [with T = float]: block: [0,0,0], thread: [0,0,0] Assertion `t` "
		"failed.\n"
		"k.cu:1: void k(T *) [with T = double]: block: [0,0,0], thread: [1,0,0] Assertion `t` "
		"failed.\n",
		"A k.cu:1|k|t|cuda||2|1|2|\n"),
	FORM("rank tag", "[rank3]: " HERE "`t` failed.\n", "A k.cu:9|k|t|cuda|3|1|1|1|\n"),
	FORM("mpirun tag", "[1,3]<stderr>:" HERE "`t` failed.\n", "A k.cu:9|k|t|cuda|3|1|1|1|\n"),
	FORM("torchrun tee", "[default5]:" HERE "`t` failed.\n", "A k.cu:9|k|t|cuda|5|1|1|1|\n"),
	FORM("srun label", "15: " HERE "`t` failed.\n", "A k.cu:9|k|t|cuda|15|1|1|1|\n"),
	FORM("actor",
		"(EngineCore pid=222) " HERE "`t` failed.\n"
		"(RayWorker pid=7, ip=10.0.0.2) " HERE "`t` failed.\n",
		"A k.cu:9|k|t|cuda||2|1|1|\n"),
	FORM("actor with a rank",
		"(VllmWorker rank=1 pid=222) " HERE "`t` failed.\n",
		"A k.cu:9|k|t|cuda|1|1|1|1|\n"),
	FORM("time of a collector",
		"2024-08-30T17:28:57.137971692Z [rank1]: " HERE "`t` failed.\n"
		"[2024-08-30 17:28:57,137] " HERE "`t` failed.\n",
		"A k.cu:9|k|t|cuda|1|2|1|1|\n"),
	FORM("Triton without a place",
		"unknown:0: unknown: block: [0,0,0], thread: [128,0,0] Assertion `index out of bounds: "
		"0 <= tmp4 < 32000` failed.\n",
		"A unknown:0|unknown|index out of bounds: 0 <= tmp4 < 32000|triton||1|1|1|\n"),
	FORM("Triton, frozen module",
		"<frozen importlib._bootstrap_external>:843: _call_with_frames_removed: block: "
		"[0,0,0], thread: [1,0,0] Assertion `index out of bounds: tmp4 < ks0` failed.\n",
		"A <frozen importlib._bootstrap_external>:843|_call_with_frames_removed|index out of "
		"bounds: tmp4 < ks0|triton||1|1|1|\n"),
	FORM("Inductor",
		"/tmp/torchinductor_user/7q/c7q.py:29: unknown: block: [0,0,0], thread: [96,0,0] "
		"Assertion `index out of bounds: 0 <= tl.broadcast_to(tmp4, [XBLOCK]) < 9` failed.\n",
		"A /tmp/torchinductor_user/7q/c7q.py:29|unknown|index out of bounds: 0 <= "
		"tl.broadcast_to(tmp4, [XBLOCK]) < 9|triton||1|1|1|\n"),
	FORM("ROCm",
		"/pytorch/aten/src/ATen/native/hip/Indexing.hip:1292: indexSelectLargeIndex: "
		"Device-side assertion `srcIndex < srcSelectDimSize' failed.\n"
		"[rank1]: /pytorch/aten/src/ATen/native/hip/Indexing.hip:1292: indexSelectLargeIndex: "
		"Device-side assertion `srcIndex < srcSelectDimSize' failed.\n",
		"A aten/src/ATen/native/hip/Indexing.hip:1292|indexSelectLargeIndex|srcIndex < "
		"srcSelectDimSize|rocm|1|2|||\n"),
	FORM("XPU",
		"/build/src/ATen/native/xpu/sycl/Indexing.cpp:52: operator(): global id: [64,0,0], "
		"local id: [3,0,0] Assertion `index < n` failed\n",
		"A /build/src/ATen/native/xpu/sycl/Indexing.cpp:52|operator()|index < n|xpu||1||1|\n"),
	FORM("PRINTF before the line",
		"[CUDA_KERNEL_ASSERT] /pytorch/aten/src/X.cu:7: k: block: [0,0,0], thread: [1,0,0]: "
		"Assertion failed: `i < n`: index 12 of 10\n"
		"/pytorch/aten/src/X.cu:7: k: block: [0,0,0], thread: [1,0,0] Assertion `i < n` "
		"failed.\n",
		"A aten/src/X.cu:7|k|i < n|cuda||1|1|1|index 12 of 10\n"),
	FORM("DSA report",
		"RuntimeError: CUDA error: device-side assert triggered\n"
		"2 CUDA device-side assertion failures were found on GPU #0!\n"
		"Assertion failure 0\n"
		"  GPU assertion failure message = i < n\n"
		"  File containing assertion = /pytorch/c10/x.cu:12\n"
		"  Device function containing assertion = k\n"
		"  Thread ID that failed assertion = [5,0,0]\n"
		"  Block ID that failed assertion = [1,0,0]\n"
		"  File containing kernel launch = /x/y.cpp:9\n"
		"Assertion failure 1\n"
		"  GPU assertion failure message = i < n\n"
		"  File containing assertion = /pytorch/c10/x.cu:12\n"
		"  Device function containing assertion = k\n"
		"  Thread ID that failed assertion = [6,0,0]\n"
		"  Block ID that failed assertion = [1,0,0]\n",
		"A c10/x.cu:12|k|i < n|dsa||2|1|2|\n"
		"F RuntimeError|CUDA error: device-side assert triggered|||\n"),
	FORM("mixed by several writers",
		",0,0/a/aten/src/S.cu], thread: [60,0:115,0], thread: [16: operator(),0,0: block: [12] "
		"Assertion `i < n && \"out of bounds\",0,0` failed.\n"
		"] Assertion `i < n && \"out of bounds\",0/a/aten/src/S.cu` failed.\n"
		"],0/a/aten/src/S.cu:115: operator():115: block: [0\n",
		"A aten/src/S.cu:115|operator()|i < n && \"out of bounds\"|interleaved||2|||\n"),
	FORM("mixed, two conditions, the place last",
		": nll: block: [3], thread: [12,0,0] Assertion `t < n,0` failed.\n"
		",0], thread: [4,0,0] Assertion `t < n` failed.\n"
		"] Assertion `i >= 0` failed.\n"
		": block: [1,0,0/a/aten/src/S.cu:115: nll: block: [2,0,0] Assertion `t < n` failed.\n",
		"A aten/src/S.cu:115|nll|t < n|interleaved||3|||\n"
		"A ||i >= 0|interleaved||1|||\n"),
	FORM("mixed, two conditions in a line: whose is the place?",
		"/a/aten/src/S.cu:115: nll: block: [3] Assertion `t < n,0` failed.] Assertion `i >= 0` failed.\n",
		"A ||t < n|interleaved||1|||\n"
		"A ||i >= 0|interleaved||1|||\n"),
	FORM("mixed, no path at all",
		": nll: block: [3], thread: [12,0,0] Assertion `t < n,0` failed.\n",
		"A |nll|t < n|interleaved||1|||\n"),
	FORM("mixed, then whole",
		"] Assertion `t` failed.\n"
		"] Assertion `u` failed.\n"
		HERE "`t` failed.\n"
		HERE "`u` failed.\n",
		"A k.cu:9|k|t|interleaved||2|1|1|\n"
		"A k.cu:9|k|u|cuda||2|1|1|\n"),
	FORM("escaped line ends",
		"{\"log\": \"" HERE "`t \\u003c n` failed.\\n"
		"Traceback (most recent call last):\\n"
		"  File \\\"C:\\\\n"
		"ew\\\\a.py\\\", line 3, in f\\n"
		"    g()\\n"
		"RuntimeError: CUDA error: device-side assert triggered\\n"
		"CUDA kernel errors might be asynchronously reported\\n"
		"\"}\n",
		"A k.cu:9|k|t < n|cuda||1|1|1|\n"
		"T RuntimeError|CUDA error: device-side assert triggered| > C:\\n"
		"ew\\a.py:3 f: g()\n"
		"F RuntimeError|CUDA error: device-side assert triggered|||late\n"),
	FORM("a line of log a JSON object",
		"{\"log\":\"" HERE "`t \\u003c n` failed.\\n"
		"\",\"stream\":\"stderr\"}\n"
		"{\"log\":\"Traceback (most recent call last):\\n"
		"\"}\n"
		"{\"log\":\"  File \\\"a.py\\\", line 3, in f\\n"
		"\"}\n"
		"{\"log\":\"    g()\\n"
		"\"}\n"
		"{\"log\":\"RuntimeError: x\\n"
		"\"}\n",
		"A k.cu:9|k|t < n|cuda||1|1|1|\n"
		"T RuntimeError|x| > " TOLD "\n"
		"F RuntimeError|x|||\n"),
	FORM("UTF-16 LE",
		"\xff\xfek\0.\0c\0u\0:\0" "9\0:\0 \0b\0l\0o\0c\0k\0:\0 \0[\0" "1\0,\0" "0\0,\0"
		"0\0]\0,\0 \0t\0h\0r\0e\0a\0d\0:\0 \0[\0" "2\0,\0" "0\0,\0"
		"0\0]\0 \0A\0s\0s\0e\0r\0t\0i\0o\0n\0 \0`\0t\0`\0 \0" "f\0a\0i\0l\0e\0d\0.\0\r\0\n\0",
		"A k.cu:9||t|windows||1|1|1|\n"),
	FORM("UTF-16 BE",
		"\xfe\xff\0C\0U\0D\0A\0 \0e\0r\0r\0o\0r\0:\0 \0x\xd8\x3d\xde\x00\0\n",
		"F |CUDA error: x\U0001f600|||\n"),
	FORM("UTF-8 mark", "\xef\xbb\xbf" HERE "`t` failed.\n", "A k.cu:9|k|t|cuda||1|1|1|\n"),
	FORM("an assertion of the host",
		"python: ../csrc/op.cpp:33: void f(): Assertion `x' failed.\n"
		"python: op.cpp:3: f: Assertion `x` failed.\n",
		""),
	FORM("plain traceback",
		TRACE "RuntimeError: CUDA error: device-side assert triggered\n"
		"CUDA kernel errors might be asynchronously reported at some other API call,so the "
		"stacktrace below might be incorrect.\n",
		"T RuntimeError|CUDA error: device-side assert triggered| > " TOLD "\n"
		"F RuntimeError|CUDA error: device-side assert triggered|||late\n"),
	FORM("link before the warning",
		TRACE "torch.AcceleratorError: CUDA error: device-side assert triggered\n"
		"Search for `cudaErrorAssert' in https://docs.nvidia.com for more information.\n"
		"CUDA kernel errors might be asynchronously reported\n",
		"T torch.AcceleratorError|CUDA error: device-side assert triggered| > " TOLD "\n"
		"F torch.AcceleratorError|CUDA error: device-side assert triggered|||late\n"),
	FORM("markers",
		"Traceback (most recent call last):\n"
		"  File \"a.py\", line 3, in f\n"
		"    x = a + b\n"
		"        ~~^~~\n"
		"  [Previous line repeated 3 more times]\n"
		"  File \"<string>\", line 8, in launcher\n"
		"ValueError: x\n",
		"T ValueError|x| > a.py:3 f: x = a + b > <string>:8 launcher: \n"
		"F ValueError|x|||\n"),
	FORM("no message",
		TRACE "KeyboardInterrupt\n",
		"T KeyboardInterrupt|| > " TOLD "\n"
		"F KeyboardInterrupt||||\n"),
	FORM("chained",
		TRACE "KeyError: 1\n"
		"\n"
		"During handling of the above exception, another exception occurred:\n"
		"\n"
		"Traceback (most recent call last):\n"
		"  File \"b.py\", line 4, in h\n"
		"    i()\n"
		"ValueError: y\n",
		"T KeyError|1| > " TOLD "\n"
		"F KeyError|1|||\n"
		"T ValueError|y| > b.py:4 h: i()\n"
		"F ValueError|y|||\n"),
	FORM("behind ranks, interleaved",
		"[rank0]: Traceback (most recent call last):\n"
		"[rank1]: Traceback (most recent call last):\n"
		"[rank0]:   File \"a.py\", line 3, in f\n"
		"[rank1]:   File \"b.py\", line 4, in h\n"
		"[rank0]:     g()\n"
		"[rank1]:     i()\n"
		"[rank1]: ValueError: y\n"
		"[rank0]: ValueError: x\n",
		"T ValueError|y|1 > b.py:4 h: i()\n"
		"T ValueError|x|0 > " TOLD "\n"
		"F ValueError|y||1|\n"
		"F ValueError|x||0|\n"),
	FORM("original traceback",
		TRACE "RuntimeError: Caught RuntimeError in replica 0 on device 0.\n"
		"Original Traceback (most recent call last):\n"
		"  File \"b.py\", line 4, in h\n"
		"    i()\n"
		"RuntimeError: y\n",
		"T RuntimeError|Caught RuntimeError in replica 0 on device 0.| > " TOLD "\n"
		"F RuntimeError|Caught RuntimeError in replica 0 on device 0.|||\n"
		"T RuntimeError|y| > b.py:4 h: i()\n"
		"F RuntimeError|y|||\n"),
	FORM("spawned process",
		"Exception: \n"
		"\n"
		"-- Process 6 terminated with the following error:\n"
		TRACE "RuntimeError: y\n",
		"R 6\n"
		"T RuntimeError|y|6 > " TOLD "\n"
		"F RuntimeError|y||6|\n"),
	FORM("logger before it",
		"ERROR:root:" TRACE "ValueError: x\n",
		"T ValueError|x| > " TOLD "\n"
		"F ValueError|x|||\n"),
	FORM("logger before each line",
		"worker-1  | 12:01:02.1 ERROR Traceback (most recent call last):\n"
		"worker-1  | 12:01:02.2 ERROR   File \"a.py\", line 3, in f\n"
		"worker-1  | 12:01:02.2 ERROR     g()\n"
		"worker-1  | 12:01:02.3 ERROR ValueError: x\n",
		"T ValueError|x| > " TOLD "\n"
		"F ValueError|x|||\n"),
	FORM("a bar inside it",
		"Traceback (most recent call last):\n"
		"  File \"a.py\", line 3, in f\n"
		"    g()\n"
		"Epoch:   3%|   | 3/100\n"
		"ValueError: x\n",
		"T ValueError|x| > " TOLD "\n"
		"F ValueError|x|||\n"),
	FORM("glued to an error",
		"CUDA error after cudaEventDestroy in future dtor: device-side assert triggered" TRACE
		"ValueError: x\n",
		"F |CUDA error after cudaEventDestroy in future dtor: device-side assert triggered|||\n"
		"T ValueError|x| > " TOLD "\n"
		"F ValueError|x|||\n"),
	FORM("exception group",
		"  + Exception Group Traceback (most recent call last):\n"
		"  |   File \"a.py\", line 3, in f\n"
		"  |     g()\n"
		"  | ExceptionGroup: two (2 sub-exceptions)\n"
		"  +-+---------------- 1 ----------------\n"
		"    | Traceback (most recent call last):\n"
		"    |   File \"b.py\", line 4, in h\n"
		"    |     i()\n"
		"    | ValueError: y\n"
		"    +------------------------------------\n",
		"T ExceptionGroup|two (2 sub-exceptions)| > " TOLD "\n"
		"F ExceptionGroup|two (2 sub-exceptions)|||\n"
		"T ValueError|y| > b.py:4 h: i()\n"
		"F ValueError|y|||\n"),
	FORM("code that does not compile",
		"  File \"x.py\", line 3\n"
		"    foo(\n"
		"       ^\n"
		"SyntaxError: '(' was never closed\n",
		"T SyntaxError|'(' was never closed| > x.py:3 : foo(\n"
		"F SyntaxError|'(' was never closed|||\n"),
	FORM("pytest",
		">       loss.backward()\n"
		"\n"
		"E   RuntimeError: CUDA error: device-side assert triggered\n"
		"E   CUDA kernel errors might be asynchronously reported at some other API call\n"
		"\n"
		"test_a.py:12: RuntimeError\n"
		"E       ValueError: x\n",
		"F RuntimeError|CUDA error: device-side assert triggered|||late\n"
		"F ValueError|x|||\n"),
	FORM("a traceback that pytest quotes",
		"E   Traceback (most recent call last):\n"
		"E     File \"a.py\", line 3, in f\n"
		"E       g()\n"
		"E   ValueError: x\n",
		"T ValueError|x| > " TOLD "\n"
		"F ValueError|x|||\n"),
	FORM("faulthandler",
		"Fatal Python error: Aborted\n"
		"\n"
		"Thread 0x00007f9c (most recent call first):\n"
		"  File \"/usr/lib/python3.12/threading.py\", line 359 in wait\n"
		"\n"
		"Current thread 0x00007f3c (most recent call first):\n"
		"  File \"b.py\", line 12 in h\n"
		"  File \"a.py\", line 9 in f\n"
		"  File \"a.py\", line 30 in <module>\n"
		"\n"
		"Extension modules: numpy, torch._C (total: 2)\n"
		"Aborted (core dumped)\n",
		"T Fatal Python error|Aborted| > a.py:30 <module>:  > a.py:9 f:  > b.py:12 h: \n"),
	FORM("faulthandler, twice, without the error's name",
		"Current thread 0x00007f3c (most recent call first):\n"
		"  File \"b.py\", line 12 in h\n"
		"Thread 0x00007f9c (most recent call first):\n"
		"  File \"c.py\", line 9 in i\n"
		"Fatal Python error: Segmentation fault\n"
		"\n"
		"Current thread 0x00007f3c (most recent call first):\n"
		"  <no Python frame>\n",
		"T || > b.py:12 h: \n"),
	FORM("a C++ stack inside a traceback",
		TRACE
		"Exception raised from check at CUDAException.cpp:44 (most recent call first):\n"
		"frame #0: c10::Error::Error + 0x57 (0x7f in libc10.so)\n"
		"ValueError: x\n",
		"T ValueError|x| > " TOLD "\n"
		"F ValueError|x|||\n"),
	FORM("cut off", TRACE, "T || > " TOLD "\n"),
	FORM("rich",
		"\u256d\u2500\u2500 Traceback (most recent call last) \u2500\u2500\u256e\n"
		"\u2502 /p/train.py:42 in train                    \u2502\n"
		"\u2502                                            \u2502\n"
		"\u2502   41 \u2502   for x in y:                       \u2502\n"
		"\u2502 \u2771 42 \u2502   \u2502   loss = f(x)                  \u2502\n"
		"\u2502 /p/a/very/long/way/to/a/                    \u2502\n"
		"\u2502 module.py:7 in forward                     \u2502\n"
		"\u2502 \u2771 7 \u2502   return g()                        \u2502\n"
		"\u2570\u2500\u2500\u2500\u2500\u256f\n"
		"RuntimeError: CUDA error: device-side assert triggered\n",
		"T RuntimeError|CUDA error: device-side assert triggered| > /p/train.py:42 train: loss "
		"= f(x) > /p/a/very/long/way/to/a/module.py:7 forward: return g()\n"
		"F RuntimeError|CUDA error: device-side assert triggered|||\n"),
	FORM("rich, ASCII",
		"+--------- Traceback (most recent call last) ---------+\n"
		"| C:\\p\\train.py:42 in <module>                        |\n"
		"| > 42 |   loss = f(x)                                |\n"
		"+-----------------------------------------------------+\n"
		"ValueError: x\n",
		"T ValueError|x| > C:\\p\\train.py:42 <module>: loss = f(x)\n"
		"F ValueError|x|||\n"),
	FORM("IPython",
		"---------------------------------------------------------------------------\n"
		"RuntimeError                              Traceback (most recent call last)\n"
		"Cell In[3], line 15\n"
		"     14 ### Forward\n"
		"---> 15 out = model(x)\n"
		"\n"
		"File ~/m.py:42, in Module._call(self, *input)\n"
		"     41 if a:\n"
		"---> 42     return f(x)\n"
		"\n"
		"RuntimeError: CUDA error: device-side assert triggered\n",
		"T RuntimeError|CUDA error: device-side assert triggered| > Cell In[3]:15 : out = "
		"model(x) > ~/m.py:42 Module._call: return f(x)\n"
		"F RuntimeError|CUDA error: device-side assert triggered|||\n"),
	FORM("IPython, 8.0",
		"ValueError                                Traceback (most recent call last)\n"
		"Input In [3], in <cell line: 1>()\n"
		"----> 1 f()\n"
		"ValueError: x\n",
		"T ValueError|x| > Input In [3]:1 <cell line: 1>: f()\n"
		"F ValueError|x|||\n"),
	FORM("IPython, before 8",
		"RuntimeError                              Traceback (most recent call last)\n"
		"<ipython-input-9-3b7f> in <module>()\n"
		"----> 1 f()\n"
		"\n"
		"11 frames\n"
		"/usr/lib/m.py in g(a, b)\n"
		"    231     x = 1\n"
		"--> 232     return h()\n"
		"\n"
		"RuntimeError: x\n",
		"T RuntimeError|x| > <ipython-input-9-3b7f>:1 <module>: f() > /usr/lib/m.py:232 g: "
		"return h()\n"
		"F RuntimeError|x|||\n"),
	FORM("THC",
		"THCudaCheck FAIL file=/pytorch/aten/src/THC/X.cu line=26 error=59 : device-side "
		"assert triggered\n",
		"F |THCudaCheck FAIL file=/pytorch/aten/src/THC/X.cu line=26 error=59 : device-side "
		"assert triggered|59||\n"),
	FORM("runtime error",
		TRACE "RuntimeError: cuda runtime error (710) : device-side assert triggered at X.cu:1\n",
		"T RuntimeError|cuda runtime error (710) : device-side assert triggered at X.cu:1| > " TOLD
		"\n"
		"F RuntimeError|cuda runtime error (710) : device-side assert triggered at "
		"X.cu:1|710||\n"),
	FORM("an exception without its traceback",
		"ValueError: Expected more than 1 value per channel\n",
		"F ValueError|Expected more than 1 value per channel|||\n"),
	FORM("thrown",
		"terminate called after throwing an instance of 'c10::CUDAError'\n"
		"  what():  CUDA error: device-side assert triggered\n"
		"CUDA kernel errors might be asynchronously reported\n",
		"F c10::CUDAError|CUDA error: device-side assert triggered|||late\n"),
	FORM("a warning of CUDA",
		"[W CUDAGuardImpl.h:124] Warning: CUDA warning: device-side assert triggered (function "
		"destroyEvent)\n",
		"F |[W CUDAGuardImpl.h:124] Warning: CUDA warning: device-side assert triggered "
		"(function destroyEvent)|||\n"),
	FORM("bitsandbytes",
		"Error invalid configuration argument at line 119 in file /src/csrc/ops.cu\n",
		"F |Error invalid configuration argument at line 119 in file /src/csrc/ops.cu|||\n"),
	FORM("NCCL",
		"host:1:2 [7] NCCL WARN Cuda failure 710 'device-side assert triggered'\n",
		"F |host:1:2 [7] NCCL WARN Cuda failure 710 'device-side assert triggered'|710||\n"),
	FORM("NCCL watchdog",
		"[rank3]:[E830 17:28:57.1 ProcessGroupNCCL.cpp:1515] [PG 3 Rank 3] Process group "
		"watchdog thread terminated with exception: CUDA error: device-side assert triggered\n"
		"[Rank 4] NCCL watchdog thread terminated with exception: CUDA error: x\n",
		"F |[E830 17:28:57.1 ProcessGroupNCCL.cpp:1515] [PG 3 Rank 3] Process group watchdog "
		"thread terminated with exception: CUDA error: device-side assert triggered||3|\n"
		"F |[Rank 4] NCCL watchdog thread terminated with exception: CUDA error: x||4|\n"),
	FORM("libraries",
		"CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\n"
		"cuDNN error: CUDNN_STATUS_MAPPING_ERROR\n"
		"Triton Error [CUDA]: an illegal memory access was encountered\n"
		"HIP error: unspecified launch failure\n"
		":0:rocdevice.cpp :2786: aborting with error : HSA_STATUS_ERROR_EXCEPTION: code: "
		"0x1016\n"
		"CUDA error 700 at x.cu\n",
		"F |CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`|||\n"
		"F |cuDNN error: CUDNN_STATUS_MAPPING_ERROR|||\n"
		"F |Triton Error [CUDA]: an illegal memory access was encountered|||\n"
		"F |HIP error: unspecified launch failure|||\n"
		"F |:0:rocdevice.cpp :2786: aborting with error : HSA_STATUS_ERROR_EXCEPTION: code: "
		"0x1016|||\n"
		"F |CUDA error 700 at x.cu|700||\n"),
	FORM("the same failure again",
		"CUDA error: misaligned address\n"
		"CUDA error: misaligned address\n"
		"CUDA error: misaligned address\n",
		"F |CUDA error: misaligned address|||\n"),
	FORM("no errors",
		"Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
		"Search for `cudaErrorAssert' in https://x\n"
		"host:1:2 [7] NCCL INFO Trees\n"
		"Epoch 1 loss: 0.3\n",
		""),
	FORM("torchrun",
		"failed (exitcode: -6) local_rank: 1 (pid: 21146) of binary: python\n"
		"Root Cause (first observed failure):\n"
		"[0]:\n"
		"  rank      : 9 (local_rank: 1)\n",
		"R 9\n"),
	FORM("torchrun, others first",
		"Failures:\n"
		"[1]:\n"
		"  rank      : 4 (local_rank: 4)\n"
		"Root Cause (first observed failure):\n"
		"[0]:\n"
		"  rank      : 2 (local_rank: 2)\n",
		"R 2\n"),
	FORM("only a local rank",
		"failed (exitcode: -6) local_rank: 1 (pid: 21146) of binary: python\n",
		"R 1\n"),
	FORM("a rank crashed", "[rank0]: ERROR: Rank 0 crashed with exit code -6.\n", "R 0\n"),
	FORM("mpirun",
		"mpirun noticed that process rank 3 with PID 0 on node x exited on signal 6\n",
		"R 3\n"),
	FORM("srun", "srun: error: node1: task 5: Aborted (core dumped)\n", "R 5\n"),
	FORM("a rank that only speaks", "[rank0] epoch 0 step 120 loss 1.8841\n", ""),
	FORM("garbage",
		"\x00\xff\xfe\x80 Assertion `\x00` failed.\n"
		"\x1b[\x1b]\x1b\n"
		"Traceback (most recent call last)\n"
		"\xe2\x94",
		""),
};

static void test_forms(void **state)
{
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(forms); i++) {
		const struct form *f = &forms[i];
		char *whole = facts_of(f->text, f->len, f->len), *bytes = facts_of(f->text, f->len, 1);

		if (strcmp(whole, f->facts) != 0 || strcmp(bytes, whole) != 0) {
			print_error("%s:\nwanted:\n%s\ngot:\n%s\nbyte by byte:\n%s", f->name, f->facts, whole, bytes);
			bad++;
		}
		free(whole);
		free(bytes);
	}
	assert_int_equal(bad, 0);
}

static void test_names(void **state)
{
	static const char text[] = "/r/THC/X.cu:7: void k<int>(T *) [with T = long]: block: [1,2,3], "
		"thread: [4,5,6] Assertion `t` failed.\n";
	struct seen seen;
	struct logscan *scan = start(&seen);
	static const int64_t first[] = {1, 2, 3, 4, 5, 6};

	(void)state;
	logscan_feed(scan, 1, text, sizeof text - 1);
	assert_int_equal(seen.count, 1);
	assert_string_equal(seen.last[0].signature, "void k<int>(T *) [with T = long]");
	assert_memory_equal(seen.last[0].first_block.v, first, 3 * sizeof *first);
	assert_memory_equal(seen.last[0].first_thread.v, first + 3, 3 * sizeof *first);
	assert_int_equal(seen.last[0].pairs.n, 6);
	assert_memory_equal(seen.last[0].pairs.v, first, sizeof first);
	free(end(&seen, scan));
}

/* A mixed line leaves out what a whole one of the same assertion tells later. */
static void test_completion(void **state)
{
	static const char text[] = "] Assertion `t` failed.\n] Assertion `u` failed.\n" HERE "`t` failed.\n";
	static const int64_t block[] = {1, 0, 0}, thread[] = {2, 0, 0};
	struct seen seen;
	struct logscan *scan = start(&seen);

	(void)state;
	logscan_feed(scan, 0, text, sizeof text - 1);
	logscan_flush(scan);
	assert_int_equal(seen.count, 1);
	assert_string_equal(seen.last[0].condition, "t");
	assert_string_equal(seen.last[0].source, "k.cu:9");
	assert_memory_equal(seen.last[0].first_block.v, block, sizeof block);
	assert_memory_equal(seen.last[0].first_thread.v, thread, sizeof thread);
	free(end(&seen, scan));
}

/* Lines of one stream never mix with the other's. */
static void test_streams(void **state)
{
	struct seen seen;
	struct logscan *scan = start(&seen);
	static const char out[] = "[CUDA_KERNEL_ASSERT] k.cu:9: k: block: [1,0,0], thread: [2,0,0]: "
		"Assertion failed: `t`: value 3\n";
	static const char err[] = HERE "`t` failed.\n";

	(void)state;
	for (size_t i = 0; i < sizeof out - 1; i++) {
		logscan_feed(scan, 0, out + i, 1);
		if (i < sizeof err - 1)
			logscan_feed(scan, 1, err + i, 1);
	}
	char *facts = end(&seen, scan);

	assert_string_equal(facts, "A k.cu:9|k|t|cuda||1|1|1|value 3\n");
	free(facts);
}

/* Told at its first line, and again only from a flush after its counts have grown. */
static void test_flush(void **state)
{
	struct seen seen;
	struct logscan *scan = start(&seen);

	(void)state;
	logscan_feed(scan, 0, HERE "`t` failed.\n", sizeof(HERE "`t` failed.\n") - 1);
	assert_int_equal(seen.last[0].count, 1);
	for (int i = 0; i < 9; i++)
		logscan_feed(scan, 0, HERE "`t` failed.\n", sizeof(HERE "`t` failed.\n") - 1);
	assert_int_equal(seen.last[0].count, 1);
	logscan_flush(scan);
	assert_int_equal(seen.last[0].count, 10);
	assert_int_equal(seen.last[0].id, 0);
	free(end(&seen, scan));
}

static char *read_file(const char *path, size_t *ret_len)
{
	FILE *f = fopen(path, "rb");
	struct buf b = {0};
	char part[4096];
	size_t n;

	if (f == NULL)
		return NULL;
	while ((n = fread(part, 1, sizeof part, f)))
		buf_add(&b, part, n);
	fclose(f);
	*ret_len = b.len;
	return buf_take(&b);
}

/* However the bytes of a real log are cut, the facts are the same. */
static void test_chunks(void **state)
{
	static const size_t chunks[] = {1, 7, 4096, 0};
	const char *named = getenv("CUWHY_CASES"), *srcdir = getenv("srcdir");
	char *folder = named ? xstrdup(named) : xasprintf("%s/tests/cases", srcdir ? srcdir : ".");
	DIR *dir = opendir(folder);
	size_t logs = 0;

	(void)state;
	if (dir == NULL) {
		free(folder);
		skip();
	}
	for (struct dirent *d; (d = readdir(dir));) {
		char *path = xasprintf("%s/%s/log.txt", folder, d->d_name);
		size_t len;
		char *bytes = read_file(path, &len);

		for (size_t i = 0; bytes && i < COUNT(chunks); i++) {
			char *whole = facts_of(bytes, len, len), *cut = facts_of(bytes, len, chunks[i]);

			if (strcmp(whole, cut) != 0)
				fail_msg("%s in chunks of %zu:\n%s\nwhole:\n%s", path, chunks[i], cut, whole);
			free(whole);
			free(cut);
		}
		logs += bytes != NULL;
		free(bytes);
		free(path);
	}
	closedir(dir);
	free(folder);
	assert_true(logs > 0);
}

static long memory_peak(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return use.ru_maxrss; /* KiB */
}

static void feed_line(struct logscan *scan, const char *format, int a, int b)
{
	char line[256];
	int n = snprintf(line, sizeof line, format, a, b);

	logscan_feed(scan, 0, line, (size_t)n);
}

/* Counts stay exact where sets do not fit, and memory stays bounded. */
static void test_bounds(void **state)
{
	struct seen seen;
	struct logscan *scan = start(&seen);
	long before = memory_peak();

	(void)state;
	for (int i = 0; i < 20000; i++) {
		feed_line(scan, "k.cu:9: k: block: [%d,0,0], thread: [%d,0,0] Assertion `t` failed.\n", i / 4, i % 4);
	}
	logscan_flush(scan);
	assert_int_equal(seen.last[0].count, 20000);
	assert_int_equal(seen.last[0].threads, 20000);
	assert_int_equal(seen.last[0].blocks, 5000);
	assert_int_equal(seen.last[0].pairs.n, 4096 * 6);
	assert_true(seen.last[0].more);
	for (int i = 0; i < 600000; i++) {
		feed_line(scan, "k.cu:9: k: block: [%d,7,0], thread: [%d,0,0] Assertion `t` failed.\n", i, i % 1024);
	}
	for (int i = 0; i < 1000; i++) {
		feed_line(scan, "k.cu:%d: k: block: [0,0,0], thread: [%d,0,0] Assertion `t` failed.\n", i + 10, i);
		feed_line(scan, "ValueError: number %d%d\n", i, i);
	}
	logscan_flush(scan);
	assert_int_equal(seen.last[0].count, 620000);
	assert_int_equal(seen.count, MAX_ASSERTIONS);
#ifndef __SANITIZE_ADDRESS__ /* which keeps what is freed */
	assert_true(memory_peak() - before < 40 * 1024);
#else
	(void)before;
#endif
	free(end(&seen, scan));
}

/* A line without an end is read in windows: what is in its middle is found, once. */
static void test_endless_line(void **state)
{
	static const char assertion[] =
		" ../aten/src/X.cu:7: k: block: [0,0,0], thread: [1,0,0] Assertion `t` failed. ";
	static char noise[3000];
	struct seen seen;
	struct logscan *scan = start(&seen);
	size_t found = 0;

	(void)state;
	memset(noise, 'x', sizeof noise);
	for (int i = 0; i < 4000; i++) {
		logscan_feed(scan, 0, noise, sizeof noise - (size_t)(i % 97));
		if (i % 7 == 0) {
			logscan_feed(scan, 0, assertion, sizeof assertion - 1);
			found++;
		}
	}
	logscan_finish(scan);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.last[0].count, found);
	assert_string_equal(seen.last[0].source, "aten/src/X.cu:7");
	free(end(&seen, scan));
}

/* The same windows wherever the chunks end. */
static void test_endless_line_chunks(void **state)
{
	struct buf b = {0};

	(void)state;
	for (int i = 0; i < 40000; i++)
		buf_fmt(&b, "step %d %s%c", i, i % 3 ? "" : HERE "`t` failed", i % 1000 ? ' ' : '\r');
	char *whole = facts_of(b.data, b.len, b.len), *cut = facts_of(b.data, b.len, 0);

	assert_string_equal(whole, cut);
	free(whole);
	free(cut);
	buf_done(&b);
}

/* A deep recursion keeps its first and last frames. */
static void test_deep_traceback(void **state)
{
	struct buf b = {0};

	(void)state;
	buf_str(&b, "Traceback (most recent call last):\n");
	for (int i = 0; i < 1000; i++)
		buf_fmt(&b, "  File \"a.py\", line %d, in f%d\n    f()\n", i, i);
	buf_str(&b, "RecursionError: deep\n");
	char *facts = facts_of(b.data, b.len, 0);

	assert_non_null(strstr(facts, "a.py:0 f0: f() > "));
	assert_non_null(strstr(facts, "a.py:63 f63: f() > a.py:936 f936: f()"));
	assert_non_null(strstr(facts, "a.py:999 f999: f()\n"));
	free(facts);
	buf_done(&b);
}

#define PLACE "block: [0,0,0], thread: [0,0,0]"

/* Lines that are slow to read when some reader looks again and again at the same bytes. # is a new number. */
static const struct costly {
	const char *head, *unit, *tail;
} costly[] = {
	{"x: block: [", "Assertion `a/", ""},
	{"x: block: [ Assertion ", ".cua", ""},
	{"x: block: [ Assertion ", ".cu", ""},
	{"x: block: [", "Assertion `", "        "},
	{"x: block: [ Assertion `", " ", "x"},
	{"x: block: [ Assertion ", "/", ".cu"},
	{"", "Assertion                  ", ""},
	{"", "Device-side assertion ", ""},
	{"", PLACE " Assertion", ""},
	{"", "a:1: " PLACE " Assertion", ""},
	{"<", ">:1", PLACE " Assertion `x` failed."},
	{"", "a.cu:1: " PLACE " Assertion `#` failed.", ""},
	{"", "a.cu:#: " PLACE " Assertion `t` failed.\n", ""},
	{"a.cu:1: " PLACE " Assertion `", " failed", ""},
	{"a.cu:1: " PLACE " Assertion `", "a/", ""},
	{"k.cu:1: void ", "a<b>::", "(int): " PLACE " Assertion `t` failed."},
	{": block: [ /a.cu:1: kk: block: [\n", "] Assertion `#\n", ""},
	{"ssertion", "\\n", "failed."},
	{"", "failed.\\\\n\\n", ""},
	{"CUDA error", "x\r", ""},
	{"CUDA error failed.\\n", "x\\r", "\\n"},
	{"CUDA error", "&", "&amp;"},
	{"CUDA error", "&amp;", ""},
	{"CUDA error", "\033]", ""},
	{"", "[rank#]: ValueError: #\n", ""},
	{"", "CUDA error #\n", ""},
	{"", "Traceback (most recent call last):\n  File \"a\", line #\nE: x\n", ""},
	{TRACE, "  File \"a\", line 1\n", ""},
	{TRACE, "^", ""},
	{"--Traceback (most recent call last)--\n", "| /a\n", ""},
	{"--Traceback (most recent call last)--\n", ":1", " in x"},
	{"", "Current thread 0x1 (most recent call first):\n  File \"a\", line #\n\n", ""},
	{"Rank ", "rank :    ", " crashed"},
};

/* Any bytes are read in time that grows with their number only; the bound has room for sanitizers. */
static void test_costly_lines(void **state)
{
	enum { LINE = 64000, LINES = 10 };
	const double limit = 2; /* seconds of CPU */

	(void)state;
	for (size_t i = 0; i < COUNT(costly); i++) {
		struct buf b = {0};
		int number = 0;

		for (int n = 0; n < LINES; n++) {
			buf_str(&b, costly[i].head);
			for (size_t until = (size_t)(n + 1) * LINE; b.len < until;)
				for (const char *c = costly[i].unit; *c; c++)
					*c == '#' ? buf_fmt(&b, "%d", number++) : buf_chr(&b, *c);
			buf_fmt(&b, "%s\n", costly[i].tail);
		}
		clock_t begin = clock();

		free(facts_of(b.data, b.len, b.len));
		double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;

		buf_done(&b);
		if (seconds > limit)
			fail_msg("%s%s: %.1f s", costly[i].head, costly[i].unit, seconds);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_completion),
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_chunks),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_endless_line),
		cmocka_unit_test(test_endless_line_chunks),
		cmocka_unit_test(test_deep_traceback),
		cmocka_unit_test(test_costly_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
