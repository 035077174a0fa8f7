/*
 * The forms in which a device-side assertion is printed.
 *
 *   CUDA     FILE:LINE: FUNCTION: block: [X,Y,Z], thread: [X,Y,Z] Assertion `COND` failed.
 *   Windows  the same without FUNCTION (_wassert has no such argument)
 *   PRINTF   [CUDA_KERNEL_ASSERT] FILE:LINE: FUNC: block: [..], thread: [..]: Assertion failed: `COND`: TEXT
 *   ROCm     FILE:LINE: FUNC: Device-side assertion `COND' failed.
 *   XPU      FILE:LINE: FUNC: global id: [..], local id: [..] Assertion `MSG` failed.
 *   DSA      a report of several lines (c10/cuda/CUDADeviceAssertionHost.cpp)
 */

#include "capture/logscan_priv.h"

#include <stdlib.h>
#include <string.h>

/* The two places of a line, by what stands before each. */
static const struct coordinates {
	const char *first, *second;
	bool ungrouped;
} coordinates[] = {
	{"block: [", "thread: [", false},
	{"global id: [", "local id: [", true},
};

static bool eat_three(struct span *s, uint32_t at[3])
{
	for (int i = 0; i < 3; i++) {
		int64_t v;

		if (i && !span_eat(s, ","))
			return false;
		span_eat(s, " ");
		if (!span_eat_int(s, &v))
			return false;
		at[i] = (uint32_t)v;
	}
	return span_eat(s, "]");
}

/* Source files as compilers name them; <...> and unknown are Triton's. */
static bool is_source_path(struct span path)
{
	static const char *const ends[] = {
		".cu", ".cuh", ".h", ".hpp", ".hip", ".py", ".cc", ".cpp", ".c", ".cxx", ".inl", ".hxx", ".cl",
		">", "unknown",
	};

	for (size_t i = 0; i < COUNT(ends); i++)
		if (span_ends(path, ends[i]))
			return true;
	return false;
}

struct header {
	struct span path, function;
	int64_t line;
};

/* FILE:LINE: FUNCTION at the end of `before`, which ends where the coordinates begin. */
static bool header_read(struct span before, struct header *h)
{
	bool found = false;

	before = span_trim(before);
	if (before.n > CONDITION_MAX)
		before = span_after(before, span_end(before) - CONDITION_MAX);
	if (before.n && span_end(before)[-1] == ':')
		before.n--;
	for (const char *p = span_end(before); p > before.p; p--) {
		struct span number = span_after(before, p);
		int64_t line;

		if (p[-1] != ':' || !span_eat_int(&number, &line) || (number.n && *number.p != ':'))
			continue;
		const char *start = path_start(before.p, p - 1);
		struct span path = span_between(start, p - 1);

		if (path.n == 0 || (found && !is_source_path(path)))
			continue;
		span_eat(&number, ":");
		*h = (struct header){path, span_trim(number), line};
		found = true;
		if (is_source_path(path))
			break;
	}
	return found;
}

/*
 * The condition in `region`, which begins behind the word Assertion and holds no other assertion. It may
 * hold quotes itself, so it ends at the last quote before " failed". Without quotes (pages eat
 * back-ticks) at the first " failed".
 */
static bool condition_read(struct span region, struct span *ret_condition, const char **ret_end)
{
	static const char failed[] = " failed";
	size_t open;

	while (span_eat(&region, " "))
		;
	open = quote_at(region.p, span_end(region));
	const char *first = span_find(region, failed), *close = NULL;
	size_t close_len = 0;

	if (first == NULL)
		return false;
	for (const char *p = first; p && open; p = span_find(span_after(region, p + 1), failed))
		for (size_t n = 1; n <= 3; n++)
			if ((size_t)(p - region.p) >= open + n && quote_at(p - n, p) == n) {
				close = p;
				close_len = n;
			}
	if (close == NULL)
		close = first;
	*ret_condition = span_between(region.p + open, close - close_len);
	/* An opening quote was lost, and only then is a closing one no part of the condition. */
	if (open == 0 && ret_condition->n && close[-1] == '`')
		ret_condition->n--;
	*ret_end = close + sizeof failed - 1;
	if (*ret_end < span_end(region) && **ret_end == '.')
		++*ret_end;
	return true;
}

static bool is_triton(struct span path, struct span function)
{
	return span_ends(path, ".py") || span_starts(path, "<frozen ") ||
		(span_starts(path, "unknown") && span_starts(function, "unknown"));
}

/* The last bracket that opens before end, if it can be the one of three numbers. */
static const char *bracket_before(const char *start, const char *end)
{
	enum { LABEL_AND_NUMBERS = 64 };

	if (end - start > LABEL_AND_NUMBERS)
		start = end - LABEL_AND_NUMBERS;
	return memrchr(start, '[', (size_t)(end - start));
}

/*
 * What stands right before a word Assertion: coordinates, or Device-side. Returns where that begins, NULL
 * when the word is no assertion's. Looks back a few bytes only, as a line may hold very many such words.
 */
static const char *place_read(struct span before, struct told *t, struct exact *ret_exact)
{
	const char *word = span_end(before), *end = word, *first, *second;

	*t = (struct told){.rank = INT_UNKNOWN, .line = INT_UNKNOWN, .form = "cuda"};
	if (*word == 'a' && span_ends(before, "Device-side ")) {
		t->form = "rocm";
		return word - strlen("Device-side ");
	}
	while (end > before.p && is_blank(end[-1]))
		end--;
	second = bracket_before(before.p, end);
	first = second ? bracket_before(before.p, second) : NULL;
	if (first == NULL)
		return NULL;
	for (size_t i = 0; i < COUNT(coordinates); i++) {
		const struct coordinates *c = &coordinates[i];
		struct span at = span_after(before, first + 1);

		if (!span_ends(span_between(before.p, first + 1), c->first))
			continue;
		ret_exact->head = at.p;
		if (!eat_three(&at, t->at) || !span_eat(&at, ", ") || !span_eat(&at, c->second) ||
		    !eat_three(&at, t->at + 3))
			return NULL;
		ret_exact->tail = at.p - 1;
		t->printed = span_eat(&at, ":");
		t->placed = true;
		t->ungrouped = c->ungrouped;
		if (c->ungrouped)
			t->form = "xpu";
		return span_trim(at).n ? NULL : first + 1 - strlen(c->first);
	}
	return NULL;
}

/* FILE:LINE: FUNCTION before the place. */
static bool told_header(struct span before, struct told *t)
{
	struct header h;

	if (!header_read(before, &h))
		return false;
	t->path = h.path;
	t->line = h.line;
	t->function = h.function;
	if (strcmp(t->form, "cuda") == 0)
		t->form = is_triton(h.path, h.function) ? "triton" : h.function.n == 0 ? "windows" : "cuda";
	return true;
}

/* The condition in `region`, which begins behind the word. */
static bool told_condition(struct span region, struct told *t, const char **ret_end)
{
	if (t->printed && span_eat(&region, " failed: ")) {
		/* `COND`: TEXT to the end of the line */
		size_t open = quote_at(region.p, span_end(region));
		const char *close = span_find(region, "`: ");

		if (close == NULL || open == 0 || close < region.p + open)
			return false;
		t->condition = span_between(region.p + open, close);
		t->text = span_trim(span_after(region, close + 3));
		*ret_end = span_end(region);
		return true;
	}
	t->printed = false;
	if (condition_read(region, &t->condition, ret_end))
		return true;
	while (span_eat(&region, " "))
		;
	t->condition = span_after(region, region.p + quote_at(region.p, span_end(region)));
	t->truncated = true;
	*ret_end = span_end(region);
	return true;
}

/* The next word Assertion or assertion in s, or NULL. */
static const char *next_word(struct span s)
{
	const char *p = span_find(s, "ssertion");

	return p == NULL ? NULL : p > s.p ? p - 1 : next_word(span_after(s, p + 1));
}

/* What may belong to an assertion whose word ends at p: up to the coordinates or the word of the next one. */
static struct span reach(struct span text, const char *p)
{
	static const char *const next[] = {"Device-side assertion ", "global id: [", "block: ["};
	struct span region = span_after(text, p);

	if (region.n > CONDITION_MAX)
		region.n = CONDITION_MAX;
	for (size_t i = 0; i < COUNT(next); i++) {
		const char *found = span_find(region, next[i]);

		if (found)
			region.n = (size_t)(found - region.p);
	}
	return region;
}

bool assert_line(struct logscan *s, int stream, const struct line *l, struct span *ret_before,
	struct span *ret_after, struct exact *ret_exact)
{
	struct span rest = l->text;
	const char *word, *from = rest.p; /* next word is looked for from here */
	const char *floor = rest.p;       /* no header begins before */
	size_t count = 0, mixed = 0;

	*ret_before = *ret_after = (struct span){NULL, 0};
	*ret_exact = (struct exact){0};
	while ((word = next_word(span_after(rest, from)))) {
		struct told t;
		struct exact exact = {0};
		const char *end, *place = place_read(span_between(floor, word), &t, &exact);

		from = word + strlen("Assertion");
		if (place == NULL)
			continue;
		bool read = told_header(span_between(floor, place), &t) &&
			told_condition(reach(rest, from), &t, &end);

		floor = from;
		if (read && t.truncated && l->partial)
			break;
		if (!read || (t.truncated && word + CONDITION_MAX < span_end(rest)))
			continue;
		size_t whole = salvage_condition(t.condition);

		if (whole < t.condition.n && !t.printed) {
			t.condition.n = whole;
			t.form = "interleaved";
			mixed++;
		}
		if (l->rank != INT_UNKNOWN)
			t.rank = l->rank;
		exact.path = t.path.p;
		exact.group = fold_add(s, &t);
		*ret_exact = exact;
		if (count++ == 0)
			*ret_before = span_between(l->text.p, t.path.p);
		else
			mixed += salvage_line(s, stream, span_between(rest.p, t.path.p), l->rank);
		if (t.truncated || t.printed)
			ret_exact->group = NULL;
		rest = span_after(rest, end);
		from = floor = rest.p;
	}
	if (count == 0 && !l->partial)
		return salvage_line(s, stream, l->text, l->rank);
	*ret_after = rest;
	if (count != 1 || mixed)
		ret_exact->group = NULL;
	return count > 0;
}

/* The text behind a label of the DSA report. */
static bool labelled(struct span text, const char *label, struct span *ret_value)
{
	const char *p = span_find(text, label);

	if (p == NULL)
		return false;
	*ret_value = span_trim(span_after(text, p + strlen(label)));
	return true;
}

static void dsa_clear(struct dsa *d)
{
	free(d->message);
	free(d->place);
	free(d->function);
	*d = (struct dsa){0};
}

bool dsa_line(struct logscan *s, int stream, const struct line *l)
{
	struct dsa *d = &s->streams[stream].dsa;
	struct span value;

	if (labelled(l->text, "assertion failure message = ", &value)) {
		dsa_clear(d);
		span_keep(&d->message, value, CONDITION_MAX);
	} else if (labelled(l->text, "File containing assertion = ", &value)) {
		span_keep(&d->place, value, CONDITION_MAX);
	} else if (labelled(l->text, "Device function containing assertion = ", &value)) {
		span_keep(&d->function, value, CONDITION_MAX);
	} else if (labelled(l->text, "Thread ID that failed assertion = ", &value)) {
		if (!span_eat(&value, "[") || !eat_three(&value, d->thread))
			dsa_clear(d);
	} else if (labelled(l->text, "Block ID that failed assertion = ", &value)) {
		struct told t = {
			.condition = span_of(d->message),
			.function = span_of(d->function),
			.line = INT_UNKNOWN,
			.rank = l->rank,
			.form = "dsa",
			.placed = true,
		};
		struct header h;

		if (d->place == NULL || d->message == NULL || !span_eat(&value, "[") ||
		    !eat_three(&value, t.at))
			return true;
		memcpy(t.at + 3, d->thread, sizeof d->thread);
		if (header_read(span_of(d->place), &h)) {
			t.path = h.path;
			t.line = h.line;
		}
		fold_add(s, &t);
		dsa_clear(d);
	} else {
		return false;
	}
	return true;
}

void assert_finish(struct logscan *s, int stream)
{
	salvage_finish(s, stream);
	dsa_clear(&s->streams[stream].dsa);
}
