/*
 * Equal assertions folded into one, with exact counts.
 *
 * The fast path. A failing kernel prints the same line thousands of times, and only the six numbers of
 * block and thread differ. So a line that was once parsed is remembered as a shape: the bytes before
 * the numbers and the bytes after them, end of line included. The next line is compared with the last
 * shapes first, before its end is even searched. Mostly only thread x has changed: then there is one
 * number to read between two comparisons; else all six are read. Clocks before the path may go on.
 * Nothing is allocated. What fits no shape goes the slow way, with the same result.
 *
 * Distinct threads are counted in cells: 64 neighbouring threads of one block in one word of bits, in
 * a hash table of bounded size. The lines of a kernel come in runs of a warp, so a group remembers the
 * cell of its last line. When the table is full, the counts are lower bounds and `more` says so.
 */

#include "capture/logscan_priv.h"

#include <stdlib.h>
#include <string.h>

struct cell {
	uint32_t block[3];
	uint32_t row;  /* thread y, and z in the upper half */
	uint32_t word; /* thread x / 64 */
	uint16_t group;
	uint16_t kind;
	uint64_t bits;
};

enum { CELL_FREE, CELL_THREADS, CELL_BLOCK };

static const char block_thread[] = "], thread: [";

static inline bool cell_same(const struct cell *a, const struct cell *b)
{
	return a->word == b->word && a->block[0] == b->block[0] && a->row == b->row && a->group == b->group &&
		a->kind == b->kind && a->block[1] == b->block[1] && a->block[2] == b->block[2];
}

static size_t cell_hash(const struct cell *c)
{
	uint64_t h = c->block[0] * 0x9e3779b97f4a7c15u;

	h = (h ^ c->block[1] ^ (uint64_t)c->block[2] << 32) * 0xbf58476d1ce4e5b9u;
	h = (h ^ h >> 29 ^ c->row ^ (uint64_t)c->word << 32) * 0x94d049bb133111ebu;
	h = (h ^ h >> 31 ^ c->group ^ (uint64_t)c->kind << 16) * 0x9e3779b97f4a7c15u;
	return (size_t)(h >> 20);
}

/* The slot of key, or the free one where it goes. Slot 0 is never used: a group's 0 means none. */
static struct cell *cell_slot(struct cell *cells, size_t cap, const struct cell *key)
{
	for (size_t i = cell_hash(key);; i++) {
		struct cell *c = &cells[i & (cap - 1)];

		if (c != cells && (c->kind == CELL_FREE || cell_same(c, key)))
			return c;
	}
}

static bool cells_grow(struct folds *f)
{
	size_t cap = f->cell_cap ? f->cell_cap * 2 : 1024;

	if (cap > FOLD_CELLS)
		return false;
	struct cell *cells = xcalloc(cap, sizeof *cells);

	for (size_t i = 0; i < f->cell_cap; i++)
		if (f->cells[i].kind != CELL_FREE)
			*cell_slot(cells, cap, &f->cells[i]) = f->cells[i];
	free(f->cells);
	f->cells = cells;
	f->cell_cap = cap;
	for (size_t i = 0; i < f->group_count; i++)
		f->groups[i].cell = 0;
	return true;
}

/* The cell of key, added if need be; NULL when the table is full. */
static struct cell *cell_of(struct folds *f, const struct cell *key)
{
	struct cell *c;

	if (f->cell_cap == 0)
		cells_grow(f);
	c = cell_slot(f->cells, f->cell_cap, key);
	if (c->kind != CELL_FREE)
		return c;
	if (f->cell_count >= f->cell_cap / 4 * 3) {
		if (!cells_grow(f))
			return NULL;
		c = cell_slot(f->cells, f->cell_cap, key);
	}
	*c = *key;
	f->cell_count++;
	return c;
}

static void add_distinct(struct folds *f, struct group *g, const uint32_t at[6])
{
	struct cell key = {
		.block = {at[0], at[1], at[2]},
		.row = at[4] | at[5] << 16,
		.word = at[3] / 64,
		.group = (uint16_t)(g - f->groups),
		.kind = CELL_THREADS,
	};
	uint64_t bit = (uint64_t)1 << at[3] % 64;
	struct cell *c = g->cell ? &f->cells[g->cell] : NULL;

	if (c == NULL || !cell_same(c, &key)) {
		c = at[4] > UINT16_MAX || at[5] > UINT16_MAX ? NULL : cell_of(f, &key);
		if (c == NULL) {
			g->a.more = true;
			return;
		}
		g->cell = (uint32_t)(c - f->cells);
	}
	if (c->bits & bit)
		return;
	if (c->bits == 0 && g->a.blocks != INT_UNKNOWN) {
		struct cell block = {.block = {at[0], at[1], at[2]}, .group = key.group, .kind = CELL_BLOCK};
		size_t count = f->cell_count;

		c->bits = bit;
		if (cell_of(f, &block) == NULL)
			g->a.more = true;
		g->a.blocks += f->cell_count > count;
	} else {
		c->bits |= bit;
	}
	g->a.threads++;
	if (g->a.blocks == INT_UNKNOWN)
		return;
	if (g->a.pairs.n >= (size_t)FOLD_PAIRS * 6 || f->pair_count >= FOLD_ALL_PAIRS) {
		g->a.more = true;
		return;
	}
	for (size_t i = 0; i < 6; i++)
		ints_add(&g->a.pairs, at[i]);
	f->pair_count++;
}

static void count_line(struct folds *f, struct group *g, bool printed, const uint32_t *at)
{
	*(printed ? &g->printed : &g->lines) += 1;
	/* CUDA_KERNEL_ASSERT_PRINTF prints twice a thread: either may be missing, neither counts twice. */
	g->a.count = g->lines > g->printed ? g->lines : g->printed;
	g->grown = true;
	if (at)
		add_distinct(f, g, at);
}

static uint64_t spelling_of(const struct told *t)
{
	uint64_t h = span_hash(t->path, (uint64_t)t->line);

	h = span_hash(t->function, h);
	return span_hash(t->condition, h) | 1;
}

/* Two texts are the same where both are known. */
static bool agrees(const char *a, const char *b)
{
	return a == NULL || b == NULL || strcmp(a, b) == 0;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* An unknown beginning is one of anything. */
static bool begins(const char *text, const char *beginning)
{
	return beginning == NULL || (text && starts_with(text, beginning));
}

static uint64_t text_hash(const char *text)
{
	return text ? span_hash(span_of(text), 1) : 0;
}

static struct group_mark mark_of(const struct assertion *a)
{
	return (struct group_mark){text_hash(a->source), text_hash(a->condition),
		strcmp(a->form, "interleaved") == 0};
}

/*
 * The group that an assertion belongs to. What was cut off, or comes out of mixed lines, is taken for
 * one that is already known wherever it does not contradict it.
 */
static struct group *find_group(struct folds *f, const struct told *t, const struct assertion *a)
{
	struct group_mark mark = mark_of(a);

	for (size_t i = 0; i < f->group_count; i++) {
		const struct group_mark *known = &f->marks[i];
		const struct assertion *b = &f->groups[i].a;
		bool source = mark.source == known->source && same_text(a->source, b->source);

		if (t->truncated) {
			if (source && agrees(a->kernel, b->kernel) && begins(b->condition, a->condition))
				return &f->groups[i];
		} else if (mark.condition == known->condition && (source || mark.mixed || known->mixed)) {
			bool mixed = (mark.mixed || known->mixed) && agrees(a->source, b->source);

			if (same_text(a->condition, b->condition) &&
			    (mixed || (source && same_text(a->kernel, b->kernel))))
				return &f->groups[i];
		}
	}
	return NULL;
}

/* Of the first line that has block and thread. */
static void set_place(const struct told *t, struct assertion *a)
{
	a->threads = 0;
	if (!t->ungrouped)
		a->blocks = 0;
	for (size_t i = 0; i < 3; i++) {
		if (!t->ungrouped)
			ints_add(&a->first_block, t->at[i]);
		ints_add(&a->first_thread, t->at[3 + i]);
	}
}

static void describe(const struct told *t, struct assertion *a)
{
	record_init(&assertion_record, a);
	a->form = xstrdup(t->form);
	if (t->path.n) {
		char *path = name_source(t->path);

		a->source = path;
		if (t->line != INT_UNKNOWN) {
			a->source = xasprintf("%s:%lld", path, (long long)t->line);
			free(path);
		}
	}
	if (t->function.n) {
		a->kernel = name_kernel(t->function);
		a->signature = span_text(t->function, CONDITION_MAX);
		if (strcmp(a->kernel, a->signature) == 0) {
			free(a->signature);
			a->signature = NULL;
		}
	}
	a->condition = t->truncated ? span_text_or_null(t->condition, CONDITION_MAX) :
				      span_text(t->condition, CONDITION_MAX);
	a->rank = t->rank;
	a->count = 0;
	if (t->placed)
		set_place(t, a);
}

/* What a later line knows that the first did not. */
static void complete(struct group *g, const struct told *t)
{
	if (g->a.rank == INT_UNKNOWN)
		g->a.rank = t->rank;
	if (g->a.text == NULL && t->text.n)
		g->a.text = span_text_or_null(t->text, TEXT_MAX);
	if (t->placed && g->a.threads == INT_UNKNOWN)
		set_place(t, &g->a);
}

static void move_text(char **to, char **from)
{
	if (*to == NULL) {
		*to = *from;
		*from = NULL;
	}
}

/* Mixed lines may have left a group without its place, which another of its assertions tells. */
static void name_mixed(struct folds *f, struct group *g, struct assertion *from)
{
	struct group_mark *mark = &f->marks[g - f->groups];

	if (!mark->mixed)
		return;
	move_text(&g->a.source, &from->source);
	move_text(&g->a.kernel, &from->kernel);
	mark->source = text_hash(g->a.source);
}

struct group *fold_add(struct logscan *s, const struct told *t)
{
	struct folds *f = &s->folds;
	uint64_t spelling = spelling_of(t);
	size_t slot = spelling >> 8 & (FOLD_RECENT - 1);
	bool recent = f->recent[slot].spelling == spelling && !t->truncated, first = false;
	struct group *g = recent ? f->recent[slot].group : NULL;

	if (f->groups == NULL)
		f->groups = xcalloc(FOLD_GROUPS, sizeof *f->groups);
	if (g == NULL) {
		struct assertion a;

		describe(t, &a);
		g = find_group(f, t, &a);
		first = g == NULL && f->group_count < FOLD_GROUPS;
		if (first) {
			a.id = (int64_t)f->group_count;
			f->marks[f->group_count] = mark_of(&a);
			g = &f->groups[f->group_count++];
			g->a = a;
		} else {
			if (g && !t->truncated)
				name_mixed(f, g, &a);
			record_done(&assertion_record, &a);
		}
		if (g == NULL || (t->truncated && !t->placed && !first))
			return NULL;
		if (!t->truncated) {
			f->recent[slot].spelling = spelling;
			f->recent[slot].group = g;
		}
	}
	complete(g, t);
	count_line(f, g, t->printed, t->placed ? t->at : NULL);
	if (first) {
		g->grown = false;
		s->sink.assertion(s->sink.user, &g->a);
	}
	return g;
}

void fold_flush(struct logscan *s)
{
	for (size_t i = 0; i < s->folds.group_count; i++) {
		struct group *g = &s->folds.groups[i];

		if (g->grown)
			s->sink.assertion(s->sink.user, &g->a);
		g->grown = false;
	}
}

static void shape_done(struct shape *m)
{
	free(m->head);
	free(m->tail);
	buf_done(&m->near);
	buf_done(&m->far);
}

void fold_done(struct folds *f)
{
	for (size_t i = 0; i < f->group_count; i++)
		record_done(&assertion_record, &f->groups[i].a);
	for (size_t i = 0; i < f->shape_count; i++) {
		shape_done(&f->shapes[i]);
	}
	free(f->groups);
	free(f->cells);
}

/* A decimal number of at most nine digits; NULL when there is none. end is never read. */
static inline const char *read_number(const char *p, const char *end, uint32_t *ret_v)
{
	const char *start = p;
	uint32_t v = 0;

	while (p < end && (unsigned char)(*p - '0') < 10)
		v = v * 10 + (uint32_t)(*p++ - '0');
	*ret_v = v;
	return p > start && p - start < 10 ? p : NULL;
}

static inline const char *read_three(const char *p, const char *end, uint32_t v[3])
{
	for (int i = 0; i < 3; i++) {
		if (i && (p == end || *p++ != ','))
			return NULL;
		p = read_number(p, end, &v[i]);
		if (p == NULL)
			return NULL;
	}
	return p;
}

/* Digits before the path (a collector's clock, a rank) may be any: the group has its rank already. */
static inline bool prefix_fits(const struct shape *m, const char *p)
{
	for (size_t i = 0; i < m->loose; i++)
		if (p[i] != m->head[i] && !(is_digit(p[i]) && is_digit(m->head[i])))
			return false;
	return true;
}

/*
 * A line whose block, thread y and thread z are the last line's too: one number and two comparisons.
 * Zero when it is not.
 */
static inline size_t shape_repeats(const struct shape *m, const char *p, size_t len, uint32_t *ret_x)
{
	const char *end = p + len, *q;

	if (m->near.len == 0 || len <= m->near.len || !prefix_fits(m, p) ||
	    memcmp(p + m->loose, m->near.data + m->loose, m->near.len - m->loose) != 0)
		return 0;
	q = read_number(p + m->near.len, end, ret_x);
	if (q == NULL || (size_t)(end - q) < m->far.len || memcmp(q, m->far.data, m->far.len) != 0)
		return 0;
	return (size_t)(q + m->far.len - p);
}

/* Remembers a line that fits, its thread x (from x to after) left out. */
static void shape_keep(struct shape *m, const char *p, size_t used, const char *x, const char *after)
{
	m->near.len = m->far.len = 0;
	buf_add(&m->near, p, (size_t)(x - p));
	buf_add(&m->far, after, (size_t)(p + used - after));
}

static size_t shape_fits(struct shape *m, const char *p, size_t len)
{
	const size_t middle = sizeof block_thread - 1;
	const char *end = p + len, *q = p + m->head_len, *x, *after;
	uint32_t at[6];

	if (len < m->head_len + m->tail_len || !prefix_fits(m, p) ||
	    memcmp(p + m->loose, m->head + m->loose, m->head_len - m->loose) != 0)
		return 0;
	if (m->tail_len == 0)
		return m->head_len;
	q = read_three(q, end, at);
	if (q == NULL || (size_t)(end - q) < middle || memcmp(q, block_thread, middle) != 0)
		return 0;
	x = q + middle;
	q = read_three(x, end, at + 3);
	if (q == NULL || (size_t)(end - q) < m->tail_len || memcmp(q, m->tail, m->tail_len) != 0)
		return 0;
	q += m->tail_len;
	after = memchr(x, ',', (size_t)(end - x));
	shape_keep(m, p, (size_t)(q - p), x, after);
	memcpy(m->at, at, sizeof at);
	return (size_t)(q - p);
}

size_t fold_fast(struct folds *f, const char *p, size_t len)
{
	/* Kinds that alternate do so in a steady order: after the last shape, its successor is tried. */
	for (size_t k = 0; k < f->shape_count; k++) {
		size_t i = f->shape_last + k < f->shape_count ? f->shape_last + k : f->shape_last + k - f->shape_count;
		struct shape *m = &f->shapes[i];
		size_t used = shape_repeats(m, p, len, &m->at[3]);

		if (used == 0)
			used = shape_fits(m, p, len);
		if (used == 0)
			continue;
		f->shape_last = i;
		count_line(f, m->group, false, m->tail_len ? m->at : NULL);
		return used;
	}
	return 0;
}

void fold_learn(struct folds *f, struct span raw, const struct exact *x)
{
	size_t head = x->head ? (size_t)(x->head - raw.p) : raw.n;
	size_t tail = x->head ? (size_t)(x->tail - raw.p) : raw.n;
	size_t path = (size_t)(x->path - raw.p);
	struct shape *m = &f->shapes[f->shape_next];

	if (head == 0 || head + (raw.n - tail) > 2 * CONDITION_MAX)
		return;
	if (f->shape_next < f->shape_count) {
		shape_done(m);
	} else {
		f->shape_count++;
	}
	*m = (struct shape){
		.head = xstrndup(raw.p, head),
		.tail = xstrndup(raw.p + tail, raw.n - tail),
		.head_len = head,
		.tail_len = raw.n - tail,
		.loose = path <= FOLD_PREFIX ? path : 0,
		.group = x->group,
	};
	f->shape_last = f->shape_next;
	f->shape_next = (f->shape_next + 1) % FOLD_SHAPES;
}
