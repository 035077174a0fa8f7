/*
 * The forms in which a device-side assertion is printed.
 *
 *   CUDA     FILE:LINE: FUNCTION: block: [X,Y,Z], thread: [X,Y,Z] Assertion `COND` failed.
 *   Windows  the same without FUNCTION (_wassert has no such argument)
 *   PRINTF   [CUDA_KERNEL_ASSERT] FILE:LINE: FUNC: block: [..], thread: [..]: Assertion failed: `COND`: TEXT
 *   ROCm     FILE:LINE: FUNC: Device-side assertion `COND' failed.
 *   XPU      FILE:LINE: FUNC: global id: [..], local id: [..] Assertion `MSG` failed.
 *   DSA      a report of several lines (c10/cuda/CUDADeviceAssertionHost.cpp)
 *
 * The CUDA runtime writes each argument of the line by itself, so lines of several processes that share
 * a terminal mix at these places; what can be put together again is told with form "interleaved".
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

	for (size_t i = 0; i < COUNT(ends); i++) {
		size_t n = strlen(ends[i]);

		if (path.n >= n && memcmp(span_end(path) - n, ends[i], n) == 0)
			return true;
	}
	return false;
}

/* Does p stand behind a character of U+2500 to U+25FF, of which progress bars and boxes are made? */
static bool is_bar(const char *start, const char *p)
{
	return p - start >= 3 && memcmp(p - 3, "\xe2\x94", 2) >= 0 && memcmp(p - 3, "\xe2\x97", 2) <= 0;
}

/* Where the path that ends at end begins, not before start. */
static const char *path_start(const char *start, const char *end)
{
	const char *p = end;

	if (p > start && p[-1] == '>') {
		while (p > start && *p != '<')
			p--;
		return *p == '<' ? p : end;
	}
	for (; p > start; p--) {
		unsigned char c = (unsigned char)p[-1];

		if (is_bar(start, p) || !(is_word((char)c) || c >= 0x80 || memchr("/\\.-+~%@=", c, 9)))
			break;
	}
	/* C:\ */
	if (p - start >= 2 && p[-1] == ':' && p < end && (*p == '\\' || *p == '/') && is_word(p[-2]) &&
	    !is_digit(p[-2]) && (p - start == 2 || !is_word(p[-3])))
		p -= 2;
	return p;
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
	return (path.n > 3 && memcmp(span_end(path) - 3, ".py", 3) == 0) || span_starts(path, "<frozen ") ||
		(span_starts(path, "unknown") && span_starts(function, "unknown"));
}

/* What the runtime prints of a line in one piece: the beginnings of the other pieces. */
static size_t piece_at(struct span s)
{
	static const char *const pieces[] = {": block: [", "], thread: [", "] Assertion `", "` failed"};
	struct span rest = s;
	int64_t v;

	for (size_t i = 0; i < COUNT(pieces); i++)
		if (span_starts(s, pieces[i]))
			return strlen(pieces[i]);
	if ((span_eat(&rest, ",") || span_eat(&rest, ":")) && span_eat_int(&rest, &v) &&
	    (rest.n == 0 || memchr("`,/]:", *rest.p, 5)))
		return (size_t)(rest.p - s.p);
	return 0;
}

/* The length of a condition up to a piece of another line. */
static size_t condition_len(struct span condition)
{
	for (size_t i = 0; i < condition.n; i++) {
		struct span rest = span_after(condition, condition.p + i);

		if ((*rest.p == ':' || *rest.p == ']' || *rest.p == ',' || *rest.p == '`') && piece_at(rest))
			return i;
		if (*rest.p == '/' && i && condition.p[i - 1] != ' ' && condition.p[i - 1] != '/') {
			const char *dot = span_find(rest, ".cu");

			if (dot && path_start(rest.p, dot) == rest.p)
				return i;
		}
	}
	return condition.n;
}

static void keep_text(char **slot, struct span text)
{
	free(*slot);
	*slot = span_text(text, CONDITION_MAX);
}

/* A name as the runtime prints it between ": " and another piece, never an expression. */
static struct span function_at(struct span s)
{
	size_t n = 0;

	while (n < s.n && (is_word(s.p[n]) || (s.p[n] == ':' && n + 1 < s.n && s.p[n + 1] == ':' && n > 0)))
		n += s.p[n] == ':' ? 2 : 1;
	if (n && n + 1 < s.n && s.p[n] == '(' && s.p[n + 1] == ')')
		n += 2;
	struct span name = {s.p, n};

	if (n < 2 || is_digit(*s.p) || span_starts(s, "block: [") ||
	    (n < s.n && !piece_at(span_after(s, s.p + n)) && s.p[n] != '/'))
		name.n = 0;
	return name;
}

/* Keeps path, line and name where a mixed line has them whole. */
static void gather_place(struct pieces *k, struct span mixed)
{
	for (size_t i = 0; i < mixed.n; i++) {
		struct span rest = span_after(mixed, mixed.p + i);

		if (*rest.p == '.' && span_starts(rest, ".cu")) {
			const char *end = rest.p + (span_starts(rest, ".cuh") ? 4 : 3);
			const char *start = path_start(mixed.p, end);

			if (end < span_end(mixed) && is_word(*end))
				continue;
			/* digits of another piece may touch the path: ,0/pytorch/... */
			const char *slash = memchr(start, '/', (size_t)(end - start));

			if (slash && slash > start && is_digit(slash[-1]))
				start = slash;
			keep_text(&k->path, span_between(start, end));
		} else if (*rest.p == ':') {
			struct span number = span_after(rest, rest.p + 1);
			int64_t line;

			if (span_eat_int(&number, &line)) {
				/* no clock and no port: those are followed by something else */
				if (number.n == 0 || *number.p == '/' || span_starts(number, ": ") || piece_at(number))
					k->line = line;
			} else if (span_eat(&number, " ")) {
				struct span name = function_at(number);

				if (name.n)
					keep_text(&k->function, name);
			}
		}
	}
}

static void fold_pieces(struct logscan *s, struct pieces *k, int64_t rank)
{
	struct told t = {
		.path = span_of(k->path),
		.function = span_of(k->function),
		.condition = span_of(k->condition),
		.line = k->path ? k->line : INT_UNKNOWN,
		.rank = rank,
		.form = "interleaved",
	};

	for (; k->waiting; k->waiting--)
		fold_add(s, &t);
}

/* Puts together what a mixed line still shows. */
static bool gather(struct logscan *s, int stream, struct span mixed, int64_t rank)
{
	struct pieces *k = &s->streams[stream].pieces;
	const char *p;

	if (!span_find(mixed, ": block: [") && !span_find(mixed, "], thread: [") &&
	    !span_find(mixed, "] Assertion `"))
		return false;
	if (k->path == NULL && k->condition == NULL && k->function == NULL)
		k->line = INT_UNKNOWN;
	gather_place(k, mixed);
	for (struct span rest = mixed; (p = span_find(rest, "Assertion `")); rest = span_after(rest, p + 1)) {
		struct span condition = span_trim(span_after(rest, p + strlen("Assertion `")));

		condition.n = condition_len(condition);
		if (condition.n == 0)
			continue;
		keep_text(&k->condition, condition);
		k->waiting++;
		if (k->path && k->line != INT_UNKNOWN)
			fold_pieces(s, k, rank);
	}
	return true;
}

/* Reads the assertion whose word is at `word`: all of it into *t, its place into *ret_start and *ret_end. */
static bool told_read(struct span text, const char *word, struct told *t, const char **ret_start,
	const char **ret_end, struct exact *ret_exact)
{
	struct header h;
	struct span region = span_after(text, word + strlen("Assertion"));
	const struct coordinates *c = NULL;
	const char *first = NULL, *last = word;

	*t = (struct told){.rank = INT_UNKNOWN, .line = INT_UNKNOWN, .form = "cuda"};
	if (word - text.p >= 12 && memcmp(word - 12, "Device-side ", 12) == 0) {
		last = word - 12;
		t->form = "rocm";
	}
	for (size_t i = 0; i < COUNT(coordinates) && last == word; i++) {
		struct span before = span_between(text.p, word);
		const char *p;

		if (before.n > 2 * CONDITION_MAX)
			before = span_after(before, word - 2 * CONDITION_MAX);

		while ((p = span_find(before, coordinates[i].first))) {
			first = p;
			c = &coordinates[i];
			before = span_after(before, p + 1);
		}
		if (first)
			break;
	}
	if (c) {
		struct span at = span_after(text, first + strlen(c->first));

		ret_exact->head = at.p;
		if (!eat_three(&at, t->at) || !span_eat(&at, ", ") || !span_eat(&at, c->second) ||
		    !eat_three(&at, t->at + 3))
			return false;
		ret_exact->tail = at.p - 1;
		t->printed = span_eat(&at, ":");
		if (span_trim(at).p != word)
			return false;
		t->placed = true;
		t->ungrouped = c->ungrouped;
		if (c->ungrouped)
			t->form = "xpu";
		last = first;
	} else if (last == word) {
		return false;
	}
	if (!header_read(span_between(text.p, last), &h))
		return false;
	t->path = h.path;
	t->line = h.line;
	t->function = h.function;
	if (strcmp(t->form, "cuda") == 0)
		t->form = is_triton(h.path, h.function) ? "triton" : h.function.n == 0 ? "windows" : "cuda";
	*ret_start = ret_exact->path = h.path.p;
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

/* How far the assertion at `word` may reach: up to the coordinates or the word of the next one. */
static struct span reach(struct span text, const char *word)
{
	static const char *const next[] = {"block: [", "global id: [", "Device-side assertion "};
	struct span tail = span_after(text, word + 1);

	if (tail.n > CONDITION_MAX)
		tail.n = CONDITION_MAX;
	for (size_t i = 0; i < COUNT(next); i++) {
		const char *p = span_find(tail, next[i]);

		if (p)
			tail.n = (size_t)(p - tail.p);
	}
	return span_between(text.p, span_end(tail));
}

bool assert_line(struct logscan *s, int stream, const struct line *l, struct span *ret_before,
	struct span *ret_after, struct exact *ret_exact)
{
	struct span rest = l->text;
	const char *word, *from = rest.p; /* next word is looked for from here */
	size_t count = 0, mixed = 0;

	*ret_before = *ret_after = (struct span){NULL, 0};
	*ret_exact = (struct exact){0};
	while ((word = next_word(span_after(rest, from)))) {
		struct told t;
		struct exact exact = {0};
		const char *start, *end;

		from = word + strlen("Assertion");
		if (!told_read(reach(rest, word), word, &t, &start, &end, &exact))
			continue;
		if (t.truncated && l->partial)
			break;
		if (t.truncated && word + CONDITION_MAX < span_end(rest))
			continue;
		size_t whole = condition_len(t.condition);

		if (whole < t.condition.n && !t.printed) {
			t.condition.n = whole;
			t.form = "interleaved";
			mixed++;
		}
		if (l->rank != INT_UNKNOWN)
			t.rank = l->rank;
		exact.group = fold_add(s, &t);
		*ret_exact = exact;
		if (count++ == 0)
			*ret_before = span_between(l->text.p, start);
		else
			mixed += gather(s, stream, span_between(rest.p, start), l->rank);
		if (t.truncated || t.printed)
			ret_exact->group = NULL;
		rest = span_after(rest, end);
		from = rest.p;
	}
	if (count == 0 && !l->partial)
		return gather(s, stream, l->text, l->rank);
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
		keep_text(&d->message, value);
	} else if (labelled(l->text, "File containing assertion = ", &value)) {
		keep_text(&d->place, value);
	} else if (labelled(l->text, "Device function containing assertion = ", &value)) {
		keep_text(&d->function, value);
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
	struct pieces *k = &s->streams[stream].pieces;

	if (k->condition)
		fold_pieces(s, k, INT_UNKNOWN);
	free(k->path);
	free(k->function);
	free(k->condition);
	*k = (struct pieces){0};
	dsa_clear(&s->streams[stream].dsa);
}
