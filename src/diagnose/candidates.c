#include "diagnose/candidates.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/pattern.h"

#define N_(text) text /* marks a text for translation */

enum { FEWEST_MULTIPROCESSORS = 16 }; /* of a GPU that people train on */

/* Releases as 100 * major + minor; a build lies between two of them. */
struct releases {
	int from, to; /* inclusive */
};

/* One printed thread with all that formulas may ask for; sizes are 0 when not known. */
struct launch {
	int64_t bx, by, bz, tx, ty;
	int64_t count;    /* elements of the operand */
	int64_t slice, multiprocessors;
	const int64_t *shape;
	size_t ndim;
	int itemsize;     /* bytes an element of the input */
	struct releases releases;
	int64_t max_thread; /* the highest thread.x of all printed ones: dates the launch size */
	int64_t line;
	const char *condition;
	int64_t divide;   /* elements are these positions divided by it; 1 unless the formula sets it */
};

/* Candidates while they are gathered. */
struct gather {
	struct candidate_set *set;
	int64_t step;   /* of an endless progression, for the rule */
	bool endless;
	bool open;      /* the thread may have walked more elements than were added */
	size_t thread;  /* candidates of the thread in hand */
	size_t widest;  /* the most of any thread */
	const char *operand, *rule; /* the formula's, unless it says otherwise */
};

static void add(struct gather *g, int64_t element)
{
	struct ints *e = &g->set->elements;

	for (size_t i = 0; i < e->n; i++)
		if (e->v[i] == element)
			return;
	if (e->n == CANDIDATES_MAX)
		g->set->more = true;
	else
		ints_add(e, element);
}

/*
 * first, first + step, ...: count of them, or with 0 as many as lie below the operand's size. Those
 * past the size are no candidates.
 */
static void progression(
	struct gather *g, const struct launch *l, int64_t first, int64_t step, int64_t count, int64_t size)
{
	size_t seen = 0;

	if (count == 0 && size == 0) {
		g->endless = true;
		g->step = step;
		add(g, first / l->divide);
		return;
	}
	int64_t last = -1;

	for (int64_t k = 0; (count == 0 || k < count) && seen <= CANDIDATES_MAX; k++) {
		int64_t at = first + k * step;

		if (size && at >= size)
			break;
		if (at / l->divide != last)
			seen++;
		last = at / l->divide;
		add(g, last);
	}
	g->thread += seen;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
	return a / b + (a % b != 0);
}

/* Loss kernels */

static void one_of_1024(struct launch *l, struct gather *g)
{
	progression(g, l, 1024 * l->bx + l->tx, 1, 1, l->count);
}

static void only_element(struct launch *l, struct gather *g)
{
	progression(g, l, 0, 1, 1, l->count);
}

/*
 * One block walks the whole batch. It had 32 threads until 2.7, where the class check stood in lines
 * 250 and 242; since 2.8 the number grows with the batch (Loss.cu, nll_loss_threads).
 */
static void nll_reduce(struct launch *l, struct gather *g)
{
	int64_t threads = 32;

	if (l->releases.to >= 208 && l->line != 250 && l->line != 242 &&
	    (l->releases.from >= 208 || l->max_thread >= 32)) {
		while (threads < 1024 && (double)(l->count / 16) >= 1.4142 * (double)threads)
			threads *= 2;
		while (threads <= l->max_thread && threads < 1024)
			threads *= 2;
	}
	progression(g, l, l->tx, threads, 0, l->count);
}

/* Each sample is walked by blocks of 1024 threads, max(1, ceil(H*W / 1024) / 128) of them. */
static void nll_2d(struct launch *l, struct gather *g)
{
	int64_t batch = l->ndim ? l->shape[0] : 0;
	int64_t pixels = batch ? l->count / batch : 0;

	if (pixels == 0) {
		g->endless = true;
		return;
	}
	int64_t blocks = ceil_div(pixels, 1024) / 128;

	blocks = blocks ? blocks : 1;
	int64_t sample = l->bx / blocks, first = l->bx % blocks * 1024 + l->tx;

	if (sample < batch)
		progression(g, l, sample * pixels + first, 1024 * blocks, 0, (sample + 1) * pixels);
}

/* The batch is the fastest index here, and rows come before columns. */
static void nll_2d_no_reduce(struct launch *l, struct gather *g)
{
	int64_t j = 1024 * l->bx + l->tx;

	if (l->ndim != 3 || l->count == 0)
		return;
	int64_t batch = l->shape[0], h = l->shape[1], w = l->shape[2];

	progression(g, l, j % batch * h * w + j / batch % h * w + j / (batch * h), 1, j < l->count, l->count);
}

static void block_only(struct launch *l, struct gather *g)
{
	progression(g, l, l->bx, 1, 1, l->count);
}

/* Element by element */

/*
 * Blocks of `threads` threads with `each` elements a thread. A full block loads vectors of `width`,
 * the last block one by one (aten/src/ATen/native/cuda/CUDALoops.cuh, MemoryAccess.cuh).
 */
static void vectorized(struct launch *l, struct gather *g, int64_t threads, int64_t each, int64_t width)
{
	int64_t start = threads * each * l->bx;

	if (l->tx >= threads)
		return;
	if (l->count == 0 || start + threads * each > l->count)
		progression(g, l, start + l->tx, threads, each, l->count);
	if (l->count && start + threads * each > l->count)
		return;
	for (int64_t group = 0; group < each / width; group++)
		progression(g, l, start + (l->tx + threads * group) * width, 1, width, l->count);
}

/* Releases that can have made the line, and whose formula is from..to. */
static bool may_be(const struct launch *l, int from, int to)
{
	return l->releases.from <= to && l->releases.to >= from;
}

static void loss_elementwise(struct launch *l, struct gather *g)
{
	if (may_be(l, 105, 110))
		vectorized(l, g, 64, 4, 4);
	if (may_be(l, 111, 206))
		vectorized(l, g, 128, 4, 4);
	if (may_be(l, 207, 9999))
		vectorized(l, g, 128, 8, 16 / l->itemsize);
}

static void scatter_elementwise(struct launch *l, struct gather *g)
{
	if (may_be(l, 106, 110) && l->tx < 64)
		progression(g, l, 256 * l->bx + l->tx, 64, 4, l->count);
	if (may_be(l, 111, 206))
		progression(g, l, 512 * l->bx + l->tx, 128, 4, l->count);
	if (may_be(l, 207, 9999))
		progression(g, l, 1024 * l->bx + l->tx, 128, 8, l->count);
}

/* The text `0 <= p3 && p3 <= 1` tells which of the thread's four elements it was. */
static void bernoulli(struct launch *l, struct gather *g)
{
	const char *p = strchr(l->condition, 'p');

	if (p && p[1] >= '1' && p[1] <= '4')
		progression(g, l, 4 * (512 * l->bx + l->tx) + (p[1] - '1'), 1, 1, l->count);
}

static void one_of_512(struct launch *l, struct gather *g)
{
	progression(g, l, 512 * l->bx + l->tx, 1, 1, l->count);
}

/* Indexing */

/*
 * Blocks count the elements of the result; a known slice makes them positions in the index. Past the
 * last one, the index is not in the first dimension and is walked again for each position before it.
 */
static void index_elementwise(struct launch *l, struct gather *g)
{
	int64_t first = 512 * l->bx + l->tx;

	if (l->slice == 0) {
		g->operand = N_("flat positions in the result");
		g->rule = "r = 512*block + thread + 128*k, k < 4";
		progression(g, l, first, 128, 4, 0);
		return;
	}
	l->divide = l->slice;
	if (l->count && first >= l->count * l->slice)
		first %= l->count * l->slice;
	progression(g, l, first, 128, 4, l->count * l->slice);
}

static void take_elementwise(struct launch *l, struct gather *g)
{
	progression(g, l, 512 * l->bx + l->tx, 128, 4, l->count);
}

/* Every thread walks all indices, 16 at most. */
static void small_index(struct launch *l, struct gather *g)
{
	if (l->count > 0 && l->count <= 16)
		progression(g, l, 0, 1, l->count, l->count);
}

/* A grid of at most 8 blocks a multiprocessor walks all selected elements. */
static void large_index(struct launch *l, struct gather *g)
{
	if (l->slice == 0 || l->count == 0)
		return;
	int64_t total = l->count * l->slice, blocks = ceil_div(total, 128), first = 128 * l->bx + l->tx;

	if (l->multiprocessors == 0 && blocks > 8 * FEWEST_MULTIPROCESSORS)
		return;
	if (l->multiprocessors && blocks > 8 * l->multiprocessors)
		blocks = 8 * l->multiprocessors;
	l->divide = l->slice;
	progression(g, l, first, 128 * blocks, 0, total);
}

static void tma_scatter(struct launch *l, struct gather *g)
{
	progression(g, l, 8 * l->bx + l->tx / 32, 1, 1, l->count);
}

/* Sampling, pooling, others */

/* A block a row, a thread a category; only thread 0 looks at sums. */
static void multinomial(struct launch *l, struct gather *g)
{
	int64_t rows = l->ndim == 2 ? l->shape[0] : l->ndim == 1 ? 1 : 0;
	int64_t categories = l->ndim ? l->shape[l->ndim - 1] : 0;
	int64_t threads = categories && categories < 1024 ? categories : 1024;
	int64_t step = 4 * l->multiprocessors;

	if (!categories || categories > INT32_MAX) {
		g->endless = true;
		return;
	}
	for (int64_t row = l->bx; row < rows; row += step ? step : rows)
		progression(g, l, row * categories + l->tx, threads, 0, (row + 1) * categories);
}

/* With no more than 4 rows a multiprocessor, which a small batch never has, the row is the block. */
static void multinomial_sum(struct launch *l, struct gather *g)
{
	int64_t rows = l->ndim == 2 ? l->shape[0] : 0, step = 4 * l->multiprocessors;

	g->open = !rows || (!step && rows > 4 * FEWEST_MULTIPROCESSORS);
	progression(g, l, l->bx, step ? step : 1, step && rows ? 0 : 1, rows);
}

/* Since 1.6; before, a row was shared out over four warps. */
static void search_row(struct launch *l, struct gather *g)
{
	if (may_be(l, 106, 9999))
		progression(g, l, l->by, 1, 1, l->ndim == 2 ? l->shape[0] : 0);
}

/* A warp a bag and 32 features; the operand is the offsets, the slice an embedding's length. */
static void embedding_bag(struct launch *l, struct gather *g)
{
	if (l->slice == 0 || l->count == 0)
		return;
	l->divide = ceil_div(l->slice, 32);
	progression(g, l, 8 * l->bx + l->ty, 8192, 0, l->count * l->divide);
}

static void unpool_3d(struct launch *l, struct gather *g)
{
	if (l->ndim < 3 || l->count == 0)
		return;
	int64_t h = l->shape[l->ndim - 2], w = l->shape[l->ndim - 1];

	progression(g, l, (l->bz * h + 8 * l->by + l->ty) * w + 32 * l->bx + l->tx, 1, 1, l->count);
}

static void repeat_counts(struct launch *l, struct gather *g)
{
	progression(g, l, 16 * l->bx + l->tx / 32, 16 * 2048, 0, l->count ? l->count : 32768);
}

static void segment(struct launch *l, struct gather *g)
{
	progression(g, l, 256 * l->bx + l->tx, 1, 1, l->count);
}

#define TARGET_ROWS N_("rows of the target")
#define TARGET N_("flat positions in the target")
#define INDEX N_("flat positions in the index")
#define PROBABILITIES N_("flat positions in the probabilities")
#define PROBABILITY_ROWS N_("rows of the probabilities")
#define ROW_1024 "i = 1024*block + thread"
#define ONE_OF_512 "i = 512*block + thread"
#define PIXEL "pixel = 1024*(block % P) + thread + 1024*P*k of sample block / P"
#define CATEGORY "row = block, category = thread + 1024*k"

/*
 * The first row that fits is used. Sources: Loss.cu, NLLLoss2d.cu, IndexKernel.cu, Indexing.cu,
 * IndexKernelUtils.cu, ScatterGatherKernel.cu, MultinomialKernel.cu and their ancestors in THC and
 * THCUNN.
 */
static const struct formula {
	const char *file;      /* pattern of the base name */
	const char *kernel;    /* pattern */
	const char *condition; /* pattern */
	const char *operand;
	const char *rule;
	void (*add)(struct launch *l, struct gather *g);
} formulas[] = {
	{"*", "nll_loss_*_no_reduce_cuda_kernel", "*", TARGET_ROWS, ROW_1024, one_of_1024},
	{"*", "nll_loss_*_reduce_cuda_kernel_1d", "*", TARGET_ROWS, "the only target", only_element},
	{"*", "nll_loss_*_reduce_cuda_kernel_2d", "*", TARGET_ROWS, "i = thread + threads*k", nll_reduce},
	{"*", "nll_loss2d_forward_no_reduce_kernel", "*", TARGET, "j = 1024*block + thread, the batch fastest",
		nll_2d_no_reduce},
	{"*", "nll_loss2d_*_kernel", "*", TARGET, PIXEL, nll_2d},
	{"*", "cunn_SpatialClassNLLCriterion_*", "*", TARGET, PIXEL, nll_2d},
	{"*", "cunn_ClassNLLCriterion_*_kernel1", "*", TARGET_ROWS, "the only target", only_element},
	{"*", "cunn_ClassNLLCriterion_*_kernel", "*", TARGET_ROWS, "i = thread + 32*k", nll_reduce},
	{"*", "ClassNLLCriterion_*_no_reduce_kernel", "*", TARGET_ROWS, ROW_1024, one_of_1024},
	/* Windows prints no kernel: file and condition tell them apart as far as needed. */
	{"NLLLoss2d.*", "", "t >=*", TARGET, PIXEL, nll_2d},
	{"SpatialClassNLLCriterion.*", "", "t >=*", TARGET, PIXEL, nll_2d},
	{"Loss.*", "", "t >=*", TARGET_ROWS, "i = thread + threads*k", nll_reduce},
	{"ClassNLLCriterion.*", "", "t >=*", TARGET_ROWS, "i = thread + 32*k", nll_reduce},
	{"Loss.*", "", "cur_target >=*", TARGET_ROWS, ROW_1024, one_of_1024},
	{"ClassNLLCriterion.*", "", "cur_target >=*", TARGET_ROWS, ROW_1024, one_of_1024},
	{"MultiMarginLoss.*", "*", "target_k*", TARGET_ROWS, "i = block", block_only},
	{"Loss.*", "*", "*_val*", N_("flat positions in the operand"), "contiguous operands, aligned vectors",
		loss_elementwise},
	{"IndexKernelUtils.*", "*", "ind*", INDEX, "i = block", block_only},
	{"*", "index*SmallIndex", "*", INDEX, "any of the 16 indices at most", small_index},
	{"*", "index*LargeIndex", "*", INDEX, "i = (128*block + thread + 128*blocks*k) / slice", large_index},
	{"IndexKernel.*", "*", "*numel*", INDEX, "i = 512*block + thread + 128*k, k < 4", take_elementwise},
	{"IndexKernel.*", "*", "*sizes[i]*", INDEX, "i = (512*block + thread + 128*k) / slice, k < 4",
		index_elementwise},
	{"IndexKernel.*", "*", "*self_dim_size*", INDEX, "i = (512*block + thread + 128*k) / slice, k < 4",
		index_elementwise},
	{"ScatterGatherKernel.*", "*", "idx_dim*", INDEX,
		"i = threads*each*block + thread + threads*k, k < each", scatter_elementwise},
	{"*", "THCudaTensor_*Kernel", "*", INDEX, ONE_OF_512, one_of_512},
	{"THCTensorIndex.*", "indexToOffset*", "*", INDEX, ONE_OF_512, one_of_512},
	{"*", "tma_scatter_*", "ind*", INDEX, "i = 8*block + thread / 32", tma_scatter},
	{"EmbeddingBag.*", "EmbeddingBag_updateOutputKernel*", "*", N_("bags"),
		"bag = (8*block + thread.y + 8192*k) / (features / 32)", embedding_bag},
	{"*", "*", "0 <= p? && p? <= 1", N_("flat positions in the probabilities"),
		"i = 4*(512*block + thread) + number of p - 1", bernoulli},
	{"Distributions.*", "*", "lambda >= 0*", N_("flat positions in the rates"), ONE_OF_512, one_of_512},
	{"*", "sampleMultinomialOnce", "*sum*", PROBABILITY_ROWS, "row = block", multinomial_sum},
	{"*", "renormRowsL1", "*sum*", PROBABILITY_ROWS, "row = block", multinomial_sum},
	{"*", "sampleMultinomialOnce", "*", PROBABILITIES, CATEGORY, multinomial},
	{"*", "renormRowsL1", "*", PROBABILITIES, CATEGORY, multinomial},
	{"MultinomialKernel.*", "binarySearchForMultinomial", "*", PROBABILITY_ROWS, "row = block.y",
		search_row},
	{"*", "max_unpooling2d_forward_kernel", "*", N_("flat positions in the indices"), ROW_1024,
		one_of_1024},
	{"*", "max_unpooling3d_forward_kernel", "*", N_("flat positions in the indices"),
		"column = 32*block.x + thread.x, row = 8*block.y + thread.y, plane = block.z", unpool_3d},
	{"Repeat.*", "*", "repeat >= 0", N_("positions in the repeats"), "i = 16*block + thread / 32",
		repeat_counts},
	{"*", "post_sum_div_kernel", "*", N_("segments"), "i = 256*block + thread", segment},
};

/* The release of a build, from what is known of it and from the path that was compiled in. */
static struct releases releases_of(const struct assertion *a, const char *torch)
{
	struct releases r = {0, 9999};
	int major, minor;
	const char *source = a->source ? a->source : "";
	const char *stamp = strstr(source, "conda-bld/pytorch_");

	if (torch && sscanf(torch, "%2d.%2d", &major, &minor) == 2) {
		r.from = r.to = 100 * major + minor;
		return r;
	}
	/* A conda build's folder holds the Unix time in milliseconds; 1.11 is of March 2022. */
	int64_t when = stamp ? strtoll(stamp + strlen("conda-bld/pytorch_"), NULL, 10) : 0;

	if (strstr(source, "THC"))
		r.to = 109;
	else if (a->condition && strstr(a->condition, "scatter gather kernel index"))
		r.from = 208;
	else if (starts_with(source, "../aten")) /* wheels of 1.11 to 2.5 */
		r = (struct releases){111, 205};
	else if (when > INT64_C(1480000000000))
		r = when < INT64_C(1646000000000) ? (struct releases){0, 110} : (struct releases){111, 205};
	return r;
}

/* Bytes an element; floating point losses run on float32 unless told otherwise. */
static int itemsize(const char *dtype)
{
	if (dtype && strstr(dtype, "64"))
		return 8;
	return dtype && strstr(dtype, "16") ? 2 : 4;
}

static const struct formula *find_formula(const struct assertion *a)
{
	const char *source = a->source ? a->source : "", *base = source;
	const char *condition = a->condition ? a->condition : "";

	for (const char *s = source; *s; s++)
		if (*s == '/' || *s == '\\')
			base = s + 1;
	for (size_t i = 0; i < COUNT(formulas); i++) {
		const struct formula *f = &formulas[i];

		if (pattern_whole(f->file, base, NULL) && pattern_whole(f->condition, condition, NULL) &&
		    pattern_whole(f->kernel, a->kernel ? a->kernel : "", NULL))
			return f;
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* "i = thread + 32*k: elements 5, 37, 69, ..." */
static void tell(struct candidate_set *s, const struct gather *g)
{
	size_t shown = s->elements.n < 4 ? s->elements.n : 4;
	size_t n = (size_t)snprintf(s->rule, sizeof(s->rule), "%s", g->rule);

	for (size_t i = 0; i < shown && n < sizeof(s->rule); i++)
		n += (size_t)snprintf(s->rule + n, sizeof(s->rule) - n, "%s%" PRId64,
			i ? ", " : s->elements.n > 1 || g->endless ? ": elements " : ": element ", s->elements.v[i]);
	if (g->endless && shown && n < sizeof(s->rule))
		snprintf(s->rule + n, sizeof(s->rule) - n, " and every %" PRId64 " on", g->step);
	else if ((s->elements.n > shown || s->more) && n < sizeof(s->rule))
		snprintf(s->rule + n, sizeof(s->rule) - n, ", ...");
}

/* Elements of a shape that is believed. */
#define COUNT_MAX ((int64_t)1 << 40)

static void fill_launch(struct launch *l, const struct assertion *a, const struct candidate_hint *hint)
{
	const char *colon = a->source ? strrchr(a->source, ':') : NULL;

	*l = (struct launch){.divide = 1, .itemsize = 4, .condition = a->condition ? a->condition : ""};
	l->line = colon ? strtoll(colon + 1, NULL, 10) : 0;
	l->releases = releases_of(a, hint ? hint->torch : NULL);
	for (size_t i = 0; i + 5 < a->pairs.n; i += 6)
		if (a->pairs.v[i + 3] > l->max_thread)
			l->max_thread = a->pairs.v[i + 3];
	if (!hint)
		return;
	l->shape = hint->shape;
	l->ndim = hint->shape ? hint->ndim : 0;
	l->slice = hint->slice;
	l->multiprocessors = hint->multiprocessors;
	l->itemsize = itemsize(hint->dtype);
	l->count = l->ndim ? 1 : 0;
	for (size_t i = 0; i < l->ndim; i++) {
		if (l->shape[i] < 0 || __builtin_mul_overflow(l->count, l->shape[i], &l->count) || l->count > COUNT_MAX) {
			l->count = 0;
			l->ndim = 0; /* no tensor of this world: its sizes are not reckoned with */
		}
	}
}

/* Past this many elements PyTorch splits a launch, and blocks count anew. */
static bool split(const struct launch *l)
{
	return l->count > INT32_MAX || (l->slice && l->count > INT32_MAX / l->slice);
}

static void add_thread(const struct formula *f, struct launch *l, const int64_t *block,
	const int64_t *thread, struct gather *g)
{
	for (int i = 0; i < 3; i++) /* bounds of CUDA's grids; whatever a log says, products stay small */
		if (block[i] < 0 || block[i] > INT32_MAX || thread[i] < 0 || thread[i] > 1023)
			return;
	l->bx = block[0], l->by = block[1], l->bz = block[2];
	l->tx = thread[0], l->ty = thread[1];
	l->divide = 1;
	g->thread = 0;
	f->add(l, g);
	if (g->thread > g->widest)
		g->widest = g->thread;
}

void candidates_of(const struct assertion *a, const struct candidate_hint *hint, struct candidate_set *out)
{
	const struct formula *f = find_formula(a);
	struct gather g = {.set = out, .operand = f ? f->operand : NULL, .rule = f ? f->rule : NULL};
	struct launch l;

	*out = (struct candidate_set){.exactness = CANDIDATES_NONE};
	fill_launch(&l, a, hint);
	if (!f || split(&l) || (a->form && strcmp(a->form, "xpu") == 0)) /* SYCL's ids are others */
		return;
	for (size_t i = 0; i + 5 < a->pairs.n; i += 6)
		add_thread(f, &l, a->pairs.v + i, a->pairs.v + i + 3, &g);
	if (a->pairs.n < 6 && a->first_block.n == 3 && a->first_thread.n == 3)
		add_thread(f, &l, a->first_block.v, a->first_thread.v, &g);
	if (out->elements.n)
		qsort(out->elements.v, out->elements.n, sizeof(int64_t), compare);
	if (g.endless)
		out->exactness = CANDIDATES_MODULO;
	else if (out->elements.n)
		out->exactness = g.widest == 1 && !g.open ? CANDIDATES_EXACT : CANDIDATES_ONE_OF;
	else
		return;
	out->operand = g.operand;
	out->more |= a->more;
	tell(out, &g);
}

void candidate_set_done(struct candidate_set *s)
{
	free(s->elements.v);
	*s = (struct candidate_set){.exactness = CANDIDATES_NONE};
}
