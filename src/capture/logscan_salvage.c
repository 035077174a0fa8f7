/*
 * Assertions put together again from lines that several writers mixed.
 *
 * The CUDA runtime writes each argument of an assertion line by itself. When several processes share a
 * terminal, their lines mix at these places, but each piece (a path, a name, a condition) stays whole.
 * Processes that fail together mostly fail in the same check: while no other condition is seen, the
 * path, line and name that are seen are its own. Among several conditions they are nobody's. The numbers of
 * blocks and threads are not put together. Told with form "interleaved".
 */

#include "capture/logscan_priv.h"

#include <stdlib.h>
#include <string.h>

/* Length of the piece of a line, other than path, name or condition, that begins at s; else 0. */
static size_t piece_at(struct span s)
{
	static const char *const pieces[] = {": block: [", "], thread: [", "] Assertion `", "` failed"};
	struct span rest = s;
	int64_t v;

	for (size_t i = 0; i < COUNT(pieces); i++)
		if (*s.p == *pieces[i] && span_starts(s, pieces[i]))
			return strlen(pieces[i]);
	if ((*s.p != ',' && *s.p != ':') || s.n < 2 || !is_digit(s.p[1]))
		return 0;
	rest = span_after(rest, rest.p + 1);
	if (span_eat_int(&rest, &v) && (rest.n == 0 || memchr("`,/]:", *rest.p, 5)))
		return (size_t)(rest.p - s.p);
	return 0;
}

/* Length of .cu or .cuh at s when a file's name ends there, else 0. */
static size_t suffix_at(struct span s)
{
	size_t n = span_starts(s, ".cuh") ? 4 : span_starts(s, ".cu") ? 3 : 0;

	return n < s.n && is_word(s.p[n]) ? 0 : n;
}

size_t salvage_condition(struct span condition)
{
	const char *slash = NULL; /* where a path may begin, among the characters of a path that end at p */

	for (const char *p = condition.p; p < span_end(condition); p++) {
		struct span rest = span_after(condition, p);

		if (memchr(":],`", *p, 4) && piece_at(rest))
			return (size_t)(p - condition.p);
		if (!path_goes_on(condition.p, p + 1))
			slash = NULL;
		else if (slash && *p == '.' && suffix_at(rest))
			return (size_t)(slash - condition.p);
		else if (*p == '/' && slash == NULL && p > condition.p && p[-1] != ' ' && p[-1] != '/')
			slash = p;
	}
	return condition.n;
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

	if (n < 2 || n > TEXT_MAX || is_digit(*s.p) || span_starts(s, "block: [") ||
	    (n < s.n && !piece_at(span_after(s, s.p + n)) && s.p[n] != '/'))
		name.n = 0;
	return name;
}

/* The path that ends at end, not before start. Digits of another piece may touch it: ,0/pytorch/... */
static struct span path_at(const char *start, const char *end)
{
	start = path_start(start, end);
	const char *slash = memchr(start, '/', (size_t)(end - start));

	if (slash && slash > start && is_digit(slash[-1]))
		start = slash;
	return span_between(start, end);
}

/* Keeps the last path, line and name that a mixed line has whole. */
static void gather_place(struct pieces *k, struct span mixed)
{
	struct span path = {NULL, 0}, function = {NULL, 0};
	const char *start = mixed.p; /* the end of the last path */

	for (const char *p = mixed.p; p < span_end(mixed); p++) {
		struct span rest = span_after(mixed, p), number;
		size_t suffix = *p == '.' ? suffix_at(rest) : 0;
		int64_t line;

		if (suffix) {
			path = path_at(start, p + suffix);
			start = p + suffix;
		}
		if (*p != ':')
			continue;
		number = span_after(rest, p + 1);
		if (span_eat_int(&number, &line)) {
			/* no clock and no port: those are followed by something else */
			if (number.n == 0 || *number.p == '/' || span_starts(number, ": ") || piece_at(number))
				k->line = line;
		} else if (span_eat(&number, " ")) {
			struct span name = function_at(number);

			if (name.n)
				function = name;
		}
	}
	if (path.n)
		span_keep(&k->path, path, TEXT_MAX);
	if (function.n)
		span_keep(&k->function, function, TEXT_MAX);
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

/* The condition behind the first word Assertion; *ret_rest begins behind the word, or is empty. */
static struct span next_condition(struct span mixed, struct span *ret_rest)
{
	static const char word[] = "Assertion `";
	const char *p = span_find(mixed, word), *next;

	*ret_rest = span_after(mixed, p ? p + sizeof word - 1 : span_end(mixed));
	next = span_find(*ret_rest, word);
	struct span condition = next ? span_between(ret_rest->p, next) : *ret_rest;

	if (condition.n > CONDITION_MAX)
		condition.n = CONDITION_MAX;
	condition.n = salvage_condition(condition);
	return span_trim(condition);
}

/* Does the line hold two conditions that differ? */
static bool is_ambiguous(struct span mixed)
{
	struct span first = {NULL, 0};

	while (mixed.n) {
		struct span condition = next_condition(mixed, &mixed);

		if (condition.n && first.n && !span_same(condition, first))
			return true;
		if (condition.n)
			first = condition;
	}
	return false;
}

static void forget(struct pieces *k)
{
	free(k->path);
	free(k->function);
	free(k->condition);
	*k = (struct pieces){.line = INT_UNKNOWN};
}

/* Makes this the condition that the next pieces belong to; what waited is counted. */
static void turn_to(struct logscan *s, struct pieces *k, struct span condition, int64_t rank)
{
	if (k->condition && span_same(span_of(k->condition), condition))
		return;
	if (k->condition) {
		fold_pieces(s, k, rank);
		forget(k);
	}
	span_keep(&k->condition, condition, CONDITION_MAX);
}

bool salvage_line(struct logscan *s, int stream, struct span mixed, int64_t rank)
{
	struct pieces *k = &s->streams[stream].pieces;
	struct span rest, condition;

	if (!span_find(mixed, ": block: [") && !span_find(mixed, "], thread: [") &&
	    !span_find(mixed, "] Assertion `"))
		return false;
	if (k->path == NULL && k->condition == NULL && k->function == NULL)
		k->line = INT_UNKNOWN;
	condition = next_condition(mixed, &rest);
	if (condition.n)
		turn_to(s, k, condition, rank);
	if (!is_ambiguous(mixed))
		gather_place(k, mixed);
	for (; rest.n; condition = next_condition(rest, &rest)) {
		if (condition.n == 0)
			continue;
		turn_to(s, k, condition, rank);
		k->waiting++;
		if (k->path && k->line != INT_UNKNOWN)
			fold_pieces(s, k, rank);
	}
	return true;
}

void salvage_finish(struct logscan *s, int stream)
{
	struct pieces *k = &s->streams[stream].pieces;

	fold_pieces(s, k, INT_UNKNOWN);
	forget(k);
}
