/* The catalogue: every row is found again, real log lines are understood, elements are worked out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "diagnose/candidates.h"
#include "diagnose/catalog_rows.h"
#include "diagnose/pattern.h"

static bool value_same(struct value a, struct value b)
{
	return a.kind == b.kind && (a.kind == VALUE_INT ? a.i == b.i : a.kind == VALUE_NONE || a.d == b.d);
}

/* Is word one of the words of list. */
static bool listed(const char *list, const char *word)
{
	size_t len = word ? strlen(word) : 0;

	for (const char *s = list; len && (s = strstr(s, word)) != NULL; s++)
		if ((s == list || s[-1] == ' ') && (s[len] == ' ' || s[len] == '\0'))
			return true;
	return false;
}

/* The last name of an operation, without the underscore of in-place methods. */
static const char *tail(const char *op, char out[static 64])
{
	const char *dot = op ? strrchr(op, '.') : NULL;

	snprintf(out, 64, "%s", dot ? dot + 1 : op ? op : "");
	size_t len = strlen(out);

	if (len > 1 && out[len - 1] == '_' && out[0] != '_')
		out[len - 1] = '\0';
	return out;
}

static void test_pattern(void **state)
{
	struct pattern_values v;

	(void)state;
	assert_true(pattern_whole("a*c", "abbc", NULL));
	assert_false(pattern_whole("a*c", "abbcd", NULL));
	assert_true(pattern_within("a*c", "xabbcd", NULL));
	assert_true(pattern_whole("*", "", NULL));
	assert_true(pattern_within("", "x", NULL));
	assert_false(pattern_within("aab", "aaac", NULL));
	assert_true(pattern_within("aab", "aaaab", NULL));
	assert_true(pattern_within("index {bad} of {span}", "an index -12 of 10.", &v));
	assert_true(value_same(v.bad, value_int(-12)));
	assert_true(value_same(v.low, value_int(-10)));
	assert_true(value_same(v.high, value_int(9)));
	assert_true(pattern_within("to {end} x {equal}", "0 to 5 x 7.5", &v));
	assert_true(value_same(v.low, value_real(7.5)));
	assert_false(pattern_within("index {bad}", "index x", &v));
	assert_true(pattern_whole("{other}", "{other}", NULL));
	assert_true(pattern_within("{bad}", "100000000000000000000", &v));
	assert_true(value_same(v.bad, value_real(1e20)));
}

/* A file that a cell of the table means. */
static void sample_file(const char *cell, char out[static 300])
{
	char first[256];

	snprintf(first, sizeof(first), "%.*s", (int)strcspn(cell, " "), cell);
	if (cell[0] == '<')
		snprintf(out, 300, "/tmp/somewhere/ab/code%s", ends_with(cell, ".py") ? ".py" : ".cu");
	else if (ends_with(first, "*") || ends_with(first, "?"))
		snprintf(out, 300, "/build/%.*snew_file.cuh", (int)strlen(first) - 1, first);
	else
		snprintf(out, 300, "/build/%s", first);
	strcat(out, ":17");
}

static void sample_condition(const struct site_row *row, char out[static 400])
{
	size_t n = 0;

	if (row->compared == SITE_ANY || row->compared == SITE_EMPTY) {
		strcpy(out, row->compared == SITE_ANY ? "whatever the author wrote" : "");
		return;
	}
	for (const char *s = row->condition; *s; s++)
		out[n++] = row->compared == SITE_PATTERN && *s == '*' ? '7' : *s;
	out[n] = '\0';
}

static void test_every_row_is_found_again(void **state)
{
	(void)state;
	assert_true(site_rows_count > 340);
	for (size_t i = 0; i < site_rows_count; i++) {
		const struct site_row *row = &site_rows[i];
		char file[300], condition[400], kernel[128];
		struct explanation e;

		sample_file(row->file, file);
		sample_condition(row, condition);
		snprintf(kernel, sizeof(kernel), "%.*s", (int)strcspn(row->kernel, " "), row->kernel);
		bool windows = strstr(row->versions, "(Windows)");
		struct assertion a = {.source = file, .kernel = windows ? NULL
			: strcmp(kernel, "*") == 0 ? (char *)"operator()" : kernel,
			.condition = condition, .form = (char *)(windows ? "windows" : "cuda")};

		assert_true(catalog_explain_assertion(&a, &e));
		if (strcmp(e.cause, row->cause) != 0)
			fail_msg("row %zu, %s: %s: %s, not %s", i + 2, file, condition, e.cause, row->cause);
		if (e.grade != CATALOG_SITE)
			fail_msg("row %zu, %s: %s: grade %d", i + 2, file, condition, e.grade);
		assert_string_equal(e.kind, "device_assert");
		assert_non_null(catalog_cause(e.cause));
	}
}

/* Log lines of public reports, and who wrote what differently. */
static const struct line {
	const char *source, *kernel, *condition, *form;
	const char *causes, *ops; /* any of them is right; NULL: not asked */
	const char *confidence;
} lines[] = {
	{"aten/src/ATen/native/cuda/Loss.cu:257", "nll_loss_forward_reduce_cuda_kernel_2d",
		"t >= 0 && t < n_classes", "cuda", "label_range", "cross_entropy", "likely"},
	{"C:/cb/pytorch_1000000000000/work/aten/src/THCUNN/ClassNLLCriterion.cu:108", NULL,
		"t >= 0 && t < n_classes", "windows", "label_range", "cross_entropy", "likely"},
	{"aten/src/THCUNN/ClassNLLCriterion.cu:106", "cunn_ClassNLLCriterion_updateOutput_kernel",
		"t >= 0 && t < n_classes", "cuda", "label_range", "cross_entropy", "likely"},
	{"aten/src/THCUNN/ClassNLLCriterion.cu:57", "ClassNLLCriterion_updateOutput_no_reduce_kernel",
		"cur_target >= 0 && cur_target < n_classes", "cuda", "label_range", "cross_entropy", "likely"},
	{"aten/src/ATen/native/cuda/NLLLoss2d.cu:103", "nll_loss2d_forward_kernel", "t >= 0 && t < n_classes",
		"cuda", "label_range", "cross_entropy", "likely"},
	{"C:\\actions-runner\\_work\\pytorch\\aten\\src\\ATen\\native\\cuda\\NLLLoss2d.cu:106", NULL,
		"t >= 0 && t < n_classes", "windows", "label_range", "cross_entropy", "likely"},
	{"torch/lib/THCUNN/SpatialClassNLLCriterion.cu:40", "cunn_SpatialClassNLLCriterion_updateOutput_kernel",
		"t >= 0 && t < n_classes", "cuda", "label_range", "cross_entropy", "likely"},
	{"torch/lib/THCUNN/BCECriterion.cu:30", "bce_functor", "input >= 0. && input <= 1.", "cuda",
		"bce_input_range", "binary_cross_entropy", "likely"},
	{"aten/src/ATen/native/cuda/Loss.cu:94", "operator()", "input_val >= zero && input_val <= one", "cuda",
		"bce_input_range", "binary_cross_entropy", "likely"},
	{"aten/src/ATen/native/cuda/Loss.cu:91", "operator()", "target_val >= zero && target_val <= one",
		"cuda", "bce_input_range", "binary_cross_entropy", "likely"},
	{"aten/src/ATen/native/cuda/Indexing.cu:1292", "indexSelectLargeIndex", "srcIndex < srcSelectDimSize",
		"cuda", "embedding_range", "embedding", "likely"},
	{"aten/src/ATen/native/hip/Indexing.hip:1292", "indexSelectLargeIndex", "srcIndex < srcSelectDimSize",
		"rocm", "embedding_range", "embedding", "likely"},
	{"aten/src/THC/THCTensorIndex.cu:308", "indexSelectSmallIndex", "srcIndex < srcSelectDimSize", "cuda",
		"embedding_range", "embedding", "likely"},
	{"aten/src/ATen/native/cuda/IndexKernelUtils.cu:16", "vectorized_gather_kernel",
		"ind >=0 && ind < ind_dim_size && \"vectorized gather kernel index out of bounds\"", "cuda",
		"index_range embedding_range", "__getitem__ embedding gather index_select", "likely"},
	{"aten/src/ATen/native/cuda/ScatterGatherKernel.cu:312", "operator()",
		"idx_dim >= 0 && idx_dim < index_size && \"index out of bounds\"", "cuda", "index_range",
		"gather scatter", "likely"},
	{"aten/src/ATen/native/cuda/ScatterGatherKernel.cu:115", "operator()",
		"idx_dim >= 0 && idx_dim < index_size", "interleaved", "index_range", "gather scatter", "likely"},
	{"aten/src/THC/THCTensorScatterGather.cu:188", "THCudaTensor_scatterFillKernel",
		"indexValue >= 0 && indexValue < tensor.sizes[dim]", "cuda", "index_range", "scatter", "likely"},
	{"aten/src/THC/THCTensorScatterGather.cu:100", "THCudaTensor_gatherKernel",
		"indexValue >= 0 && indexValue < src.sizes[dim]", "cuda", "index_range", "gather", "likely"},
	{"aten/src/ATen/native/cuda/MultiMarginLoss.cu:33", "MultiMarginLoss_forward_kernel",
		"target_k >= 0 && target_k < dim && \"target index is out of bounds\"", "cuda", "label_range",
		"multi_margin_loss", "likely"},
	{"aten/src/ATen/native/cuda/IndexKernel.cu:53", "lambda [](int)->auto::operator()(int)->auto",
		"index >= -sizes[i] && index < sizes[i] && \"index out of bounds\"", "cuda", "index_range",
		"__getitem__", "likely"},
	{"aten/src/ATen/native/cuda/IndexKernel.cu:92", "operator()",
		"-sizes[i] <= index && index < sizes[i] && \"index out of bounds\"", "cuda", "index_range",
		"__getitem__", "likely"},
	{"aten/src/ATen/native/cuda/Indexing.cu:385", "indexAddLargeIndex", "dstIndex < dstAddDimSize", "cuda",
		"index_range", "index_add", "likely"},
	{"C:\\cb\\work\\aten\\src\\ATen\\native\\cuda\\TensorCompare.cu:110", NULL, "input[0] != 0", "windows",
		"probability_invalid nan", "_assert_async multinomial", "likely"},
	{"aten/src/ATen/native/cuda/TensorCompare.cu:106", "_assert_async_cuda_kernel", "input[0] != 0", "cuda",
		"other probability_invalid", "_assert_async multinomial", "possible"},
	{"aten/src/ATen/native/cuda/TensorCompare.cu:112", "_assert_async_cuda_kernel",
		"probability tensor contains either `inf`, `nan` or element < 0", "cuda", "probability_invalid",
		"multinomial", "likely"},
	{"aten/src/ATen/native/cuda/MultinomialKernel.cu:190", "sampleMultinomialOnce", "val >= zero", "cuda",
		"probability_invalid", "multinomial", "likely"},
	{"unknown:0", "unknown", "index out of bounds: 0 <= tmp4 < 32000", "triton", "index_range",
		"__getitem__", "likely"},
	{"/tmp/torchinductor_user/7q/c7qk.py:29", "unknown", "index out of bounds: 0 <= tmp4 < (-1) + ks0",
		"triton", "index_range", "__getitem__", "likely"},
	{"C:/cb/work\\c10/core/DynamicCast.h:78", NULL, "false", "windows", "internal", NULL, "possible"},
	/* Places that the tables do not know. */
	{"aten/src/ATen/native/cuda/NewLoss.cu:12", "nll_loss_forward_reduce_cuda_kernel_2d",
		"t >= 0 && t < n_classes", "cuda", "label_range", "cross_entropy", "likely"},
	{"aten/src/ATen/native/cuda/Loss.cu:300", "nll_loss_forward_reduce_cuda_kernel_3d",
		"t >= 0 && t < n_classes", "cuda", "label_range", "cross_entropy", "likely"},
	{"aten/src/ATen/native/cuda/Loss.cu:300", "nll_loss_forward_reduce_cuda_kernel_2d", "something_else(t)",
		"cuda", "label_range", "cross_entropy", "possible"},
	{"src/ATen/native/xpu/sycl/Unknown.cpp:3", "operator()", "t >= 0 && t < n_classes_", "xpu",
		"label_range", "cross_entropy", "possible"},
	{"/home/me/my_ext/gather.cu:40", "my_gather", "idx >= 0 && idx < num_rows_of_table", "cuda",
		"index_range embedding_range", NULL, "possible"},
	{"/home/me/my_ext/norm.cu:40", "my_norm", "!isnan(x[i])", "cuda", "nan", NULL, "possible"},
	{"/home/me/my_ext/norm.cu:40", "my_norm", "state == READY", "cuda", "other", NULL, "possible"},
	{"aten/src/ATen/native/cuda/Brand.cu:40", "brand_new_kernel", "state == READY", "cuda", "unknown", NULL,
		NULL},
	{NULL, NULL, NULL, NULL, "unknown", NULL, NULL},
};

static struct assertion as_assertion(const struct line *l)
{
	return (struct assertion){.source = (char *)l->source, .kernel = (char *)l->kernel,
		.condition = (char *)l->condition, .form = (char *)l->form};
}

static void test_log_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++) {
		struct assertion a = as_assertion(&lines[i]);
		struct explanation e;
		char op[64];

		catalog_explain_assertion(&a, &e);
		if (!listed(lines[i].causes, e.cause))
			fail_msg("line %zu (%s): %s", i, lines[i].condition, e.cause);
		if (lines[i].ops && !listed(lines[i].ops, tail(e.op, op)))
			fail_msg("line %zu (%s): %s", i, lines[i].condition, op);
		if (!lines[i].confidence)
			assert_null(e.confidence);
		else if (!e.confidence || strcmp(e.confidence, lines[i].confidence) != 0)
			fail_msg("line %zu (%s): %s", i, lines[i].condition, e.confidence);
		if (e.confidence && strcmp(e.confidence, "likely") == 0)
			assert_true(e.condition && e.kernel);
		assert_non_null(e.steps);
	}
}

static struct explanation explain(
	const char *source, const char *kernel, const char *condition, const char *text)
{
	struct assertion a = {.source = (char *)source,
		.kernel = (char *)kernel,
		.condition = (char *)condition,
		.text = (char *)text};
	struct explanation e;

	catalog_explain_assertion(&a, &e);
	return e;
}

/* Lines of any length and content: a log is a stranger's. */
static void test_long_lines(void **state)
{
	char *long_text = xmalloc(9000);

	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		memset(long_text, "/*_0"[kind], 8999);
		long_text[8999] = '\0';
		struct assertion a = {.source = long_text, .kernel = long_text, .signature = long_text,
			.condition = long_text, .text = long_text, .form = long_text};
		struct candidate_set s;
		struct explanation e;

		catalog_explain_assertion(&a, &e);
		catalog_explain_failure(long_text, long_text, &e);
		candidates_of(&a, NULL, &s);
		candidate_set_done(&s);
	}
	free(long_text);
}

static void test_ranges(void **state)
{
	(void)state;
	struct explanation e = explain("unknown:0", "unknown", "index out of bounds: 0 <= tmp4 < 32000", NULL);

	assert_true(value_same(e.low, value_int(0)) && value_same(e.high, value_int(31999)));
	e = explain(
		"x/y.py:1", "unknown", "index out of bounds: 0 <= tl.broadcast_to(tmp12, [XBLOCK]) < 7", NULL);
	assert_true(value_same(e.high, value_int(6)));
	e = explain("x/y.py:1", "unknown", "index out of bounds: 0 <= tmp4 < (-1) + ks0", NULL);
	assert_true(value_same(e.low, value_int(0)) && !value_known(e.high));
	e = explain("ATen/native/cuda/Loss.cu:94", "operator()", "input_val >= zero && input_val <= one", NULL);
	assert_true(value_same(e.low, value_int(0)) && value_same(e.high, value_int(1)));
	e = explain("IndexKernelUtils.cu:16", "vectorized_gather_kernel",
		"ind >=0 && ind < ind_dim_size && \"vectorized gather kernel index out of bounds\"",
		"Expected 0 <= index < ind_dim_size(120), but got index = 160");
	assert_true(value_same(e.bad, value_int(160)) && value_same(e.high, value_int(119)));
}

static void test_refine(void **state)
{
	static const struct {
		const char *condition, *source, *kernel, *code, *op;
	} frames[] = {
		{"idx_dim >= 0 && idx_dim < index_size", "ScatterGatherKernel.cu:1", "operator()",
			"return out.scatter_add_(dim, index, src)", "scatter_add"},
		{"idx_dim >= 0 && idx_dim < index_size", "ScatterGatherKernel.cu:1", "operator()",
			"return table.scatter_(1, x.long()[:, None], on_value)", "scatter"},
		{"idx_dim >= 0 && idx_dim < index_size", "ScatterGatherKernel.cu:1", "operator()",
			"return torch.gather(", "gather"},
		{"idx_dim >= 0 && idx_dim < index_size", "ScatterGatherKernel.cu:1", "operator()",
			"y = F.one_hot(t, 10)", "one_hot"},
		{"idx_dim >= 0 && idx_dim < index_size", "ScatterGatherKernel.cu:1", "operator()",
			"loss.backward()", NULL},
		{"idx_dim >= 0 && idx_dim < index_size", "ScatterGatherKernel.cu:1", "operator()",
			"my_gather_all(x)", NULL},
		{"ind >= 0 && ind < ind_dim_size", "IndexKernelUtils.cu:1", "vectorized_gather_kernel",
			"h, _ = self.rnn(self.concept_embeddings(concept_ids))", "embedding"},
		{"ind >= 0 && ind < ind_dim_size", "IndexKernelUtils.cu:1", "vectorized_gather_kernel",
			"return F.embedding(", "embedding"},
		{"ind >= 0 && ind < ind_dim_size", "IndexKernelUtils.cu:1", "vectorized_gather_kernel",
			"q = codebook[codes]", "__getitem__"},
		{"index out of bounds: 0 <= tmp4 < 32000", "unknown:0", "unknown",
			"triton_red_fused__to_copy_add_embedding_mean_mul_pow_rsqrt_0.run(arg0_1, arg1_1)",
			"embedding"},
		{"-sizes[i] <= index && index < sizes[i]", "IndexKernel.cu:92", "operator()",
			"onehot[rows, labels] = 1.0", "__setitem__"},
		{"srcIndex < srcSelectDimSize", "Indexing.cu:1292", "indexSelectLargeIndex",
			"x = x.index_select(0, idx)", "index_select"},
		{"val >= zero", "MultinomialKernel.cu:190", "sampleMultinomialOnce", "action = dist.sample().cpu()",
			"sample"},
		{"t >= 0 && t < n_classes", "Loss.cu:1", "nll_loss_forward_reduce_cuda_kernel_2d",
			"loss = F.nll_loss(out, y)", "nll_loss"},
		{"t >= 0 && t < n_classes", "Loss.cu:1", "nll_loss_forward_reduce_cuda_kernel_2d",
			"nn.CrossEntropyLoss()(o, y)", "cross_entropy"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(frames); i++) {
		struct explanation e = explain(frames[i].source, frames[i].kernel, frames[i].condition, NULL);
		const char *op = catalog_refine_op(&e, frames[i].code);
		char last[64];

		if (!frames[i].op)
			assert_null(op);
		else if (!op || strcmp(tail(op, last), frames[i].op) != 0)
			fail_msg("%s: %s", frames[i].code, op);
	}
	assert_string_equal(
		catalog_cause_for_op("index_range", "torch.nn.functional.embedding"), "embedding_range");
	assert_string_equal(catalog_cause_for_op("embedding_range", "torch.index_select"), "index_range");
	assert_string_equal(catalog_cause_for_op("nan", "torch.nn.functional.embedding"), "nan");
}

static void test_error_texts(void **state)
{
	static const struct {
		const char *type, *text, *kind, *cause;
		bool follow_on;
	} texts[] = {
		{"RuntimeError", "0D or 1D target tensor expected, multi-target not supported", "python_error",
			"label_shape", false},
		{"RuntimeError", "bincount only supports 1-d non-negative integral inputs.", "python_error",
			"shape", false},
		{"ValueError",
			"Expected more than 1 value per channel when training, got input size torch.Size([1, 16, 1, 1])",
			"python_error", "batch_size", false},
		{"RuntimeError", "\"nll_loss_forward_reduce_cuda_kernel_2d_index\" not implemented for 'Int'",
			"python_error", "label_dtype", false},
		{NULL, "Error an illegal memory access was encountered at line 57 in file /src/csrc/ops.cu",
			"illegal_address", "illegal_address", false},
		{"RuntimeError", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
			"library_error", "out_of_memory", true},
		{"RuntimeError", "cuda runtime error (59) : device-side assert triggered at THCTensorCopy.c:18",
			"device_assert", "unknown", false},
		{"torch.AcceleratorError", "CUDA error: device-side assert triggered", "device_assert", "unknown",
			false},
		{"RuntimeError", "copy_if failed to synchronize: cudaErrorAssert: device-side assert triggered",
			"device_assert", "unknown", false},
		{"RuntimeError",
			"Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
			"device_mismatch", "device_mismatch", false},
		{"RuntimeError",
			"indices should be either on cpu or on the same device as the indexed tensor (cpu)",
			"device_mismatch", "device_mismatch", false},
		{"RuntimeError",
			"Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same",
			"device_mismatch", "device_mismatch", false},
		{"RuntimeError", "CUDA error: no kernel image is available for execution on the device",
			"no_kernel_image", "build_mismatch", false},
		{"RuntimeError", "CUDA error: misaligned address", "misaligned_address", "build_mismatch", false},
		{"RuntimeError", "CUDA error: unspecified launch failure", "launch_failure", "unknown", false},
		{"torch.cuda.OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB", "out_of_memory",
			"out_of_memory", false},
		{"RuntimeError", "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
			"library_error", "out_of_memory", true},
		{"RuntimeError", "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", "library_error", "unknown", true},
		{"AssertionError", "Torch not compiled with CUDA enabled", "python_error", "build_mismatch", false},
		{"RuntimeError", "probability tensor contains either `inf`, `nan` or element < 0", "python_error",
			"probability_invalid", false},
		{"RuntimeError",
			"The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1",
			"python_error", "shape", false},
		{"RuntimeError", "Function 'LogBackward0' returned nan values in its 0th output.", "python_error",
			"nan", false},
		{"RuntimeError", "expected scalar type Long but found Int", "python_error", "label_dtype", false},
		{"RuntimeError", "expected scalar type Half but found Float", "python_error", "other", false},
		{"RuntimeError", "Class values must be smaller than num_classes.", "python_error", "label_range",
			false},
		{"IndexError", "index out of range in self", "python_error", "embedding_range", false},
		{"KeyError", "'label'", "python_error", "other", false},
		{"MemoryError", "", "python_error", "out_of_memory", false},
		{NULL, "ncclUnhandledCudaError: Call to CUDA function failed.", "library_error", "unknown", true},
		{"RuntimeError", "Triton Error [CUDA]: device-side assert triggered", "device_assert", "unknown",
			false},
		{"RuntimeError", "DataLoader worker (pid 12) is killed by signal: Killed.", "python_error",
			"out_of_memory", false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct explanation e;

		assert_true(catalog_explain_failure(texts[i].type, texts[i].text, &e));
		if (strcmp(e.kind, texts[i].kind) != 0 || strcmp(e.cause, texts[i].cause) != 0 ||
		    e.follow_on != texts[i].follow_on)
			fail_msg("%s: %s, %s, follow on %d", texts[i].text, e.kind, e.cause, e.follow_on);
		assert_non_null(e.words);
	}
}

static void test_error_values(void **state)
{
	struct explanation e;

	(void)state;
	catalog_explain_failure("IndexError", "Target 10 is out of bounds.", &e);
	assert_string_equal(e.cause, "label_range");
	assert_true(value_same(e.bad, value_int(10)));
	catalog_explain_failure("IndexError", "index 12 is out of bounds for dimension 0 with size 10", &e);
	assert_true(value_same(e.bad, value_int(12)));
	assert_true(value_same(e.low, value_int(-10)) && value_same(e.high, value_int(9)));
	catalog_explain_failure(
		"ValueError", "Expected input batch_size (32) to match target batch_size (16).", &e);
	assert_string_equal(e.cause, "batch_size");
	assert_true(value_same(e.bad, value_int(16)) && value_same(e.low, value_int(32)));
	catalog_explain_failure("RuntimeError",
		"Given groups=1, weight of size [64, 3, 7, 7], expected input[8, 1, 32, 32] to have 3 channels, but got 1 channels"
		" instead",
		&e);
	assert_true(value_same(e.bad, value_int(1)) && value_same(e.low, value_int(3)));
	assert_false(catalog_explain_failure(NULL, "epoch 3 done", &e));
	assert_string_equal(e.cause, "unknown");
	assert_false(catalog_explain_failure(NULL, NULL, &e));
}

/* Each text row is reached by its own pattern: no row before it takes all of its texts. */
static void test_every_text_is_reached(void **state)
{
	(void)state;
	for (size_t i = 0; i < text_rows_count; i++) {
		const struct text_row *row = &text_rows[i];
		char text[300];
		size_t n = 0;

		for (const char *s = row->pattern; *s; s++) {
			if (*s == '{' && strchr(s, '}')) {
				text[n++] = '7';
				s = strchr(s, '}');
			} else {
				text[n++] = *s == '*' ? 'x' : *s;
			}
		}
		text[n] = '\0';
		struct explanation e;

		assert_true(catalog_explain_failure(strcmp(row->type, "*") == 0 ? "" : row->type, text, &e));
		if (e.words != row->words && strcmp(e.words, row->words) != 0)
			fail_msg("error-texts.tsv:%zu (%s) is never reached: %s", i + 2, row->pattern, e.words);
	}
}

static void test_causes(void **state)
{
	static const char *const ids[] = {"label_range", "label_shape", "label_dtype", "index_range",
		"embedding_range", "probability_invalid", "bce_input_range", "shape", "batch_size", "empty_batch",
		"device_mismatch", "nan", "size_limit", "build_mismatch", "illegal_address", "out_of_memory",
		"internal", "other", "unknown"};
	static const char known[] = "{name} {value} {low} {high} {classes} {op} {shape} {expect}";

	(void)state;
	assert_int_equal(cause_rows_count, COUNT(ids));
	for (size_t i = 0; i < COUNT(ids); i++) {
		const struct cause *c = catalog_cause(ids[i]);

		assert_non_null(c);
		assert_true(c->title && c->meaning && c->fix && c->fix_plain && c->steps);
		assert_null(strchr(c->fix_plain, '{'));
		for (const char *s = c->fix; (s = strchr(s, '{')) != NULL; s++) {
			char name[32];

			snprintf(name, sizeof(name), "%.*s", (int)strcspn(s, "}") + 1, s);
			assert_true(listed(known, name));
		}
	}
	assert_null(catalog_cause("no such cause"));
}

/* Candidates: the worked examples of thread-to-element, with what is known in each. */

struct example {
	const char *source, *kernel, *condition;
	int64_t block[3], thread[3];
	struct candidate_hint hint;
	enum exactness exactness;
	size_t n; /* elements; 0: not compared */
	int64_t first[8];
	bool more;
};

#define SHAPE(...) .shape = (const int64_t[]){__VA_ARGS__}, .ndim = sizeof((int64_t[]){__VA_ARGS__}) / 8

static const char class_check[] = "t >= 0 && t < n_classes", select_check[] = "srcIndex < srcSelectDimSize",
				  bce_check[] = "input_val >= zero && input_val <= one",
				  scatter_check[] = "idx_dim >= 0 && idx_dim < index_size",
				  gather_check[] = "ind >=0 && ind < ind_dim_size",
				  index_check[] = "-sizes[i] <= index && index < sizes[i]";

static const struct example examples[] = {
	{"cuda/Loss.cu:250", "nll_loss_forward_reduce_cuda_kernel_2d", class_check, {0}, {5}, {SHAPE(64)},
		CANDIDATES_ONE_OF, 2, {5, 37}, false},
	{"cuda/Loss.cu:250", "nll_loss_forward_reduce_cuda_kernel_2d", class_check, {0}, {5}, {SHAPE(1024)},
		CANDIDATES_ONE_OF, 32, {5, 37, 69, 101, 133}, false},
	{"cuda/Loss.cu:250", "nll_loss_forward_reduce_cuda_kernel_2d", class_check, {0}, {5}, {SHAPE(20)},
		CANDIDATES_EXACT, 1, {5}, false},
	{"cuda/Loss.cu:245", "nll_loss_forward_reduce_cuda_kernel_2d", class_check, {0}, {53}, {SHAPE(1000)},
		CANDIDATES_ONE_OF, 15, {53, 117, 181}, false},
	{"cuda/Loss.cu:245", "nll_loss_forward_reduce_cuda_kernel_2d", class_check, {0}, {5},
		{SHAPE(1000), .torch = "2.9.1"}, CANDIDATES_ONE_OF, 16, {5, 69}, false},
	{"cuda/Loss.cu:245", "nll_loss_forward_reduce_cuda_kernel_2d", class_check, {0}, {5}, {0},
		CANDIDATES_MODULO, 1, {5}, false},
	{"cuda/Loss.cu:245", "nll_loss_forward_reduce_cuda_kernel_1d", class_check, {0}, {0}, {0},
		CANDIDATES_EXACT, 1, {0}, false},
	{"cuda/Loss.cu:200", "nll_loss_forward_no_reduce_cuda_kernel", "cur_target >= 0", {1}, {257}, {0},
		CANDIDATES_EXACT, 1, {1281}, false},
	{"cuda/NLLLoss2d.cu:104", "nll_loss2d_forward_kernel", class_check, {5}, {999}, {SHAPE(8, 224, 224)},
		CANDIDATES_ONE_OF, 49, {5 * 50176 + 4 * 224 + 103, 5 * 50176 + 999 + 1024}, false},
	{"cuda/NLLLoss2d.cu:104", NULL, class_check, {5}, {999}, {SHAPE(8, 512, 512)}, CANDIDATES_ONE_OF, 64,
		{2 * 262144 + 3 * 512 + 487}, true},
	{"cuda/NLLLoss2d.cu:60", "nll_loss2d_forward_no_reduce_kernel", "cur_target >= 0", {0}, {13},
		{SHAPE(4, 2, 3)}, CANDIDATES_EXACT, 1, {1 * 6 + 1 * 3 + 1}, false},
	{"cuda/IndexKernelUtils.cu:16", "vectorized_gather_kernel", gather_check, {572}, {31}, {SHAPE(4, 256)},
		CANDIDATES_EXACT, 1, {2 * 256 + 60}, false},
	{"cuda/Indexing.cu:1292", "indexSelectLargeIndex", select_check, {224}, {0},
		{SHAPE(512), .slice = 768, .multiprocessors = 108}, CANDIDATES_ONE_OF, 4, {37, 181, 325, 469},
		false},
	{"cuda/Indexing.cu:1292", "indexSelectLargeIndex", select_check, {224}, {0},
		{SHAPE(512), .slice = 768, .multiprocessors = 132}, CANDIDATES_ONE_OF, 3, {37, 213, 389}, false},
	{"cuda/Indexing.cu:1292", "indexSelectLargeIndex", select_check, {224}, {0}, {SHAPE(512), .slice = 768},
		CANDIDATES_NONE, 0, {0}, false},
	{"cuda/Indexing.cu:922", "indexSelectSmallIndex", select_check, {3}, {32}, {SHAPE(3)},
		CANDIDATES_ONE_OF, 3, {0, 1, 2}, false},
	{"cuda/IndexKernel.cu:92", "operator()", index_check, {1406}, {64}, {0}, CANDIDATES_ONE_OF, 4,
		{719936, 720064, 720192, 720320}, false},
	{"cuda/IndexKernel.cu:92", "operator()", index_check, {1406}, {64}, {SHAPE(2000), .slice = 512},
		CANDIDATES_EXACT, 1, {1406}, false},
	{"cuda/ScatterGatherKernel.cu:1", "operator()", scatter_check, {3}, {10}, {.torch = "1.8.0"},
		CANDIDATES_ONE_OF, 4, {778, 842, 906, 970}, false},
	{"../aten/src/ATen/native/cuda/ScatterGatherKernel.cu:144", "operator()", scatter_check, {3}, {10}, {0},
		CANDIDATES_ONE_OF, 4, {1546, 1674, 1802, 1930}, false},
	{"cuda/ScatterGatherKernel.cu:1", "operator()", scatter_check, {3}, {10}, {.torch = "2.7"},
		CANDIDATES_ONE_OF, 8, {3082, 3210, 3338, 3466, 3594, 3722, 3850, 3978}, false},
	{"cuda/ScatterGatherKernel.cu:1", "operator()", scatter_check, {3}, {100}, {0}, CANDIDATES_ONE_OF, 12,
		{1636}, false},
	{"cuda/Loss.cu:94", "operator()", bce_check, {1}, {127}, {SHAPE(2000), .torch = "2.4"},
		CANDIDATES_ONE_OF, 4, {1020, 1021, 1022, 1023}, false},
	{"cuda/Loss.cu:94", "operator()", bce_check, {1}, {127}, {SHAPE(1000), .torch = "2.4"},
		CANDIDATES_ONE_OF, 3, {639, 767, 895}, false},
	{"cuda/Loss.cu:94", "operator()", bce_check, {1}, {127},
		{SHAPE(2048), .torch = "2.7", .dtype = "float32"}, CANDIDATES_ONE_OF, 8,
		{1532, 1533, 1534, 1535, 2044, 2045, 2046, 2047}, false},
	{"cuda/MultinomialKernel.cu:190", "sampleMultinomialOnce", "val >= zero", {2}, {17}, {SHAPE(8, 50257)},
		CANDIDATES_ONE_OF, 50, {2 * 50257 + 17, 2 * 50257 + 1041}, false},
	{"cuda/MultinomialKernel.cu:190", "sampleMultinomialOnce", "sum > accZero", {2}, {0}, {SHAPE(8, 50257)},
		CANDIDATES_EXACT, 1, {2}, false},
	{"cuda/MultinomialKernel.cu:190", "binarySearchForMultinomial", "cumdist[size - 1] > 0", {0, 7}, {0},
		{0}, CANDIDATES_EXACT, 1, {7}, false},
	{"cuda/DistributionTemplates.h:1", "operator()", "0 <= p3 && p3 <= 1", {0}, {7}, {0}, CANDIDATES_EXACT,
		1, {30}, false},
	{"cuda/MultiMarginLoss.cu:33", "MultiMarginLoss_forward_kernel", "target_k >= 0 && target_k < dim", {5},
		{0}, {0}, CANDIDATES_EXACT, 1, {5}, false},
	{"cuda/TensorCompare.cu:106", "_assert_async_cuda_kernel", "input[0] != 0", {0}, {0}, {0},
		CANDIDATES_NONE, 0, {0}, false},
	{"cuda/EmbeddingBag.cu:80", "EmbeddingBag_updateOutputKernel_sum_mean", "end >= begin", {1}, {0, 3},
		{SHAPE(10), .slice = 64}, CANDIDATES_EXACT, 1, {5}, false},
	/* Past 2^31 elements a launch is split. */
	{"cuda/ScatterGatherKernel.cu:1", "operator()", scatter_check, {3}, {10}, {SHAPE(70000, 70000)},
		CANDIDATES_NONE, 0, {0}, false},
};

static void test_candidates(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(examples); i++) {
		const struct example *x = &examples[i];
		int64_t pair[6] = {x->block[0], x->block[1], x->block[2], x->thread[0], x->thread[1], x->thread[2]};
		struct assertion a = {.source = (char *)x->source, .kernel = (char *)x->kernel,
			.condition = (char *)x->condition, .pairs = {pair, 6}};
		struct candidate_set s;

		candidates_of(&a, &x->hint, &s);
		if (s.exactness != x->exactness || s.elements.n != x->n || s.more != x->more)
			fail_msg("example %zu: exactness %d, %zu elements, %s", i, s.exactness, s.elements.n, s.rule);
		for (size_t k = 0; k < 8 && k < x->n && (k == 0 || x->first[k]); k++)
			if (s.elements.v[k] != x->first[k])
				fail_msg("example %zu: element %zu is %ld, %s", i, k, (long)s.elements.v[k], s.rule);
		assert_true((s.operand != NULL) == (s.exactness != CANDIDATES_NONE));
		candidate_set_done(&s);
	}
}

static void test_candidates_of_several_threads(void **state)
{
	int64_t pairs[] = {
		0, 0, 0, 5, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 5, 0, 0, 1, 0, 0, 2, 0, 0, -1, 0, 0, 9, 0, 0};
	struct assertion a = {.source = (char *)"cuda/Loss.cu:1",
		.kernel = (char *)"nll_loss_forward_no_reduce_cuda_kernel",
		.condition = (char *)"cur_target >= 0",
		.pairs = {pairs, COUNT(pairs)}};
	struct candidate_set s;

	(void)state;
	candidates_of(&a, NULL, &s);
	assert_int_equal(s.exactness, CANDIDATES_EXACT);
	assert_int_equal(s.elements.n, 3);
	assert_int_equal(s.elements.v[0], 3);
	assert_int_equal(s.elements.v[2], 1026);
	assert_string_equal(s.rule, "i = 1024*block + thread: elements 3, 5, 1026");
	candidate_set_done(&s);

	a.pairs.n = 0; /* only the first line is kept by old sessions */
	a.first_block = (struct ints){(int64_t[]){1, 0, 0}, 3};
	a.first_thread = (struct ints){(int64_t[]){257, 0, 0}, 3};
	candidates_of(&a, NULL, &s);
	assert_string_equal(s.rule, "i = 1024*block + thread: element 1281");
	candidate_set_done(&s);
}

/* The generator refuses what would become a wrong table. */
static int generate(const char *name, const char *edit)
{
	const char *top = getenv("srcdir") ? getenv("srcdir") : ".";
	char *command =
		xasprintf("dir=$(mktemp -d) && cp %s/data/*.tsv \"$dir\" && sed -i '%s' \"$dir\"/%s && "
				  "${AWK:-awk} -f %s/data/gen-catalog.awk \"$dir\"/causes.tsv \"$dir\"/assert-sites.tsv "
				  "\"$dir\"/error-texts.tsv > \"$dir\"/out 2>&1; rc=$?; rm -r \"$dir\"; exit $rc",
			top, edit, name, top);
	int rc = system(command);

	free(command);
	return rc;
}

static void test_generator(void **state)
{
	(void)state;
	assert_int_equal(generate("causes.tsv", ""), 0);
	assert_int_not_equal(generate("assert-sites.tsv", "5s/$/\\tone more/"), 0);
	assert_int_not_equal(generate("assert-sites.tsv", "5s/label_range/label_rnage/"), 0);
	assert_int_not_equal(generate("error-texts.tsv", "5s/device_assert/device_asert/"), 0);
	assert_int_not_equal(generate("causes.tsv", "1s/id/name/"), 0);
	assert_int_not_equal(generate("causes.tsv", "3s/label_check/look_at_it/"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pattern),
		cmocka_unit_test(test_every_row_is_found_again),
		cmocka_unit_test(test_log_lines),
		cmocka_unit_test(test_long_lines),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_refine),
		cmocka_unit_test(test_error_texts),
		cmocka_unit_test(test_error_values),
		cmocka_unit_test(test_every_text_is_reached),
		cmocka_unit_test(test_causes),
		cmocka_unit_test(test_candidates),
		cmocka_unit_test(test_candidates_of_several_threads),
		cmocka_unit_test(test_generator),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
