/* Errors that CUDA, HIP, NCCL and their libraries print, and the lines by which launchers name a rank. */

#include "capture/logscan_priv.h"

#include <stdlib.h>
#include <string.h>

enum { LATE_LINES = 3 }; /* how far below a message its warning "asynchronously reported" may stand */

static void failure_tell(struct logscan *s, struct stream *st, struct held *h)
{
	struct failures *f = &s->failures;
	const char *type = h->f.type ? h->f.type : "", *text = h->f.text ? h->f.text : "";
	uint64_t key = span_hash((struct span){type, strlen(type)}, (uint64_t)h->f.rank);

	key = span_hash((struct span){text, strlen(text)}, key);
	if (keys_add(&f->told, key))
		s->sink.failure(s->sink.user, &h->f);
	record_done(&failure_record, &h->f);
	h->lines_left = 0;
	st->open--;
}

/*
 * CUDA's number of the error: error=59, runtime error (59), CUDA error 700, Cuda failure 710, and (710)
 * behind a name. The numbers have at most three digits.
 */
static int64_t code_in(struct span text)
{
	static const struct {
		const char *before, *behind;
	} forms[] = {
		{"error=", ""}, {"error (", ")"}, {"rror ", ""}, {"rror: ", ""}, {"failure ", ""}, {"code=", ""},
		{"(", ")"},
	};

	for (size_t i = 0; i < COUNT(forms); i++) {
		const char *p;

		for (struct span rest = text; (p = span_find(rest, forms[i].before)); rest = span_after(rest, p + 1)) {
			struct span number = span_after(rest, p + strlen(forms[i].before));
			int64_t v;

			if (!span_eat_int(&number, &v) || v < 1 || v > 999 || !span_starts(number, forms[i].behind))
				continue;
			if (number.n == 0 || !(is_word(*number.p) || *number.p == '.'))
				return v;
		}
	}
	return INT_UNKNOWN;
}

/* NCCL's [PG 0 Rank 3], [Rank 3]. */
static int64_t rank_in(struct span text)
{
	const char *p;

	for (struct span rest = text; (p = span_find(rest, "Rank ")); rest = span_after(rest, p + 1)) {
		struct span number = span_after(rest, p + 5);
		int64_t rank;

		if (span_eat_int(&number, &rank) && span_starts(number, "]"))
			return rank;
	}
	return INT_UNKNOWN;
}

static bool says_late(struct span text)
{
	return span_find(text, "asynchronously reported") != NULL;
}

/* First line of a message, and what the whole of it tells. */
static void describe(const struct words *w, struct failure *f, struct span text)
{
	free(f->text);
	f->text = span_text(text, TEXT_MAX);
	if (words_find(w, text, WORD_FAIL))
		f->code = code_in(text);
	if (f->rank == INT_UNKNOWN)
		f->rank = rank_in(text);
	f->late = f->late || says_late(text);
}

void fail_hold(struct logscan *s, int stream, const struct line *l, struct span type, struct span text,
	int64_t rank)
{
	struct stream *st = &s->streams[stream];
	struct held *slot = NULL;

	for (size_t i = 0; i < SPEAKERS && slot == NULL; i++)
		if (st->held[i].lines_left && st->held[i].speaker == l->speaker)
			slot = &st->held[i];
	for (size_t i = 0; i < SPEAKERS && slot == NULL; i++)
		if (st->held[i].lines_left == 0)
			slot = &st->held[i];
	if (slot == NULL)
		slot = &st->held[0];
	if (slot->lines_left)
		failure_tell(s, st, slot);
	*slot = (struct held){.speaker = l->speaker, .lines_left = LATE_LINES};
	record_init(&failure_record, &slot->f);
	slot->f.type = span_text_or_null(type, TEXT_MAX);
	slot->f.rank = rank;
	describe(&s->words, &slot->f, text);
	st->open++;
}

void fail_pass(struct logscan *s, int stream, const struct line *l)
{
	struct stream *st = &s->streams[stream];

	for (size_t i = 0; i < SPEAKERS; i++) {
		struct held *h = &st->held[i];

		/* a message that was told for a rank may go on in lines that name none */
		if (h->lines_left == 0 || (l->speaker && h->speaker != l->speaker))
			continue;
		if (l->words & WORD_LATE)
			h->f.late = true;
		if (--h->lines_left == 0)
			failure_tell(s, st, h);
	}
}

/* terminate called after throwing an instance of 'c10::Error', then `  what():  MESSAGE` */
static bool throw_line(struct logscan *s, int stream, const struct line *l)
{
	struct stream *st = &s->streams[stream];
	static const char thrown[] = "terminate called after throwing an instance of ";
	const char *p = span_find(l->text, thrown), *what;

	if (p) {
		struct span type = span_trim(span_after(l->text, p + sizeof thrown - 1));
		size_t open = quote_at(type.p, span_end(type));
		const char *close = open ? memchr(type.p + open, '\'', type.n - open) : NULL;

		if (close)
			type = span_between(type.p + open, close);
		fail_hold(s, stream, l, type, span_after(l->text, p), l->rank);
		for (size_t i = 0; i < SPEAKERS; i++)
			if (st->held[i].lines_left && st->held[i].speaker == l->speaker)
				st->held[i].thrown = true;
		return true;
	}
	what = span_find(l->text, "what():");
	for (size_t i = 0; what && i < SPEAKERS; i++) {
		struct held *h = &st->held[i];

		if (h->lines_left == 0 || !h->thrown)
			continue;
		describe(&s->words, &h->f, span_after(l->text, what + strlen("what():")));
		h->thrown = false;
		h->lines_left = LATE_LINES;
		return true;
	}
	return false;
}

bool exception_read(struct span text, bool strict, struct span *ret_type, struct span *ret_message)
{
	static const char *const ends[] = {
		"Error", "Exception", "Interrupt", "Exit", "Iteration", "Warning", "Group", "Failed", "Failure",
		"Abort", "Timeout", "Empty", "Full", "Unavailable",
	};
	struct span type = {text.p, 0}, rest;
	bool usual = false;

	while (type.n < text.n && (is_word(text.p[type.n]) || (type.n && text.p[type.n] == '.')))
		type.n++;
	rest = span_after(text, span_end(type));
	if (type.n < 2 || is_digit(*type.p) || span_end(type)[-1] == '.')
		return false;
	for (size_t i = 0; i < COUNT(ends); i++)
		usual = usual || (span_ends(type, ends[i]) && type.n > strlen(ends[i]));
	/* a progress bar's "Epoch:  3%|" is no exception */
	if (!usual && (strict || span_find(text, "%|")))
		return false;
	if (rest.n && !span_eat(&rest, ":"))
		return false;
	if (rest.n && *rest.p != ' ')
		return false;
	*ret_type = type;
	*ret_message = span_trim(rest);
	return true;
}

/* Words of libraries that a line can hold without being about an error. */
static bool is_remark(struct span text)
{
	static const char *const remarks[] = {
		"Search for `", "kernel errors might be", "UserWarning: ", "frame #", "NCCL INFO",
	};

	for (size_t i = 0; i < COUNT(remarks); i++)
		if (span_find(text, remarks[i]))
			return true;
	return false;
}

void fail_line(struct logscan *s, int stream, const struct line *l)
{
	struct span text = span_trim(l->text), type, message;

	if ((l->words & WORD_THROW) && throw_line(s, stream, l))
		return;
	if ((l->words & WORD_ERROR) && exception_read(text, true, &type, &message) && !span_ends(type, "Warning")) {
		fail_hold(s, stream, l, type, message, l->rank);
		return;
	}
	const char *at = l->words & WORD_FAIL ? words_find(&s->words, text, WORD_FAIL) : NULL;

	/* bitsandbytes: Error invalid argument at line 119 in file ops.cu */
	if ((l->words & WORD_PLACE) && span_starts(text, "Error ") && span_find(text, " in file "))
		at = text.p;
	if (at == NULL || is_remark(text))
		return;
	if (text.n > TEXT_MAX && at - text.p > TEXT_MAX / 4)
		text = span_after(text, at - TEXT_MAX / 4);
	fail_hold(s, stream, l, (struct span){NULL, 0}, text, l->rank);
}

/* How launchers name a rank. # is the number, a space any number of spaces. */
static const struct rank_form {
	const char *form, *also;
	bool sure; /* the failing rank of the whole job; else a rank within its machine, or a later one */
} rank_forms[] = {
	{"rank : # (local_rank", NULL, true},       /* torchrun's summary */
	{"Rank # crashed", NULL, true},
	{"rocess # terminated", NULL, true},        /* torch.multiprocessing.spawn */
	{"process rank # with PID", NULL, true},    /* mpirun */
	{"task #:", "srun: error", true},           /* srun */
	{"[rank: #] Child process", NULL, true},    /* Lightning */
	{"local_rank: # (pid:", NULL, false},       /* torchrun's log */
	{"--local_rank=#", "exits with return code", false}, /* DeepSpeed */
};

static bool form_fits(const char *form, struct span at, int64_t *ret_rank)
{
	for (; *form; form++) {
		char one[2] = {*form, '\0'};

		if (*form == '#') {
			if (!span_eat_int(&at, ret_rank))
				return false;
		} else if (*form == ' ') {
			while (span_eat(&at, " "))
				;
		} else if (!span_eat(&at, one)) {
			return false;
		}
	}
	return true;
}

static void rank_tell(struct logscan *s, int64_t rank)
{
	struct failures *f = &s->failures;

	for (size_t i = 0; i < f->rank_count; i++)
		if (f->ranks[i] == rank)
			return;
	if (f->rank_count == RANK_TOLD)
		return;
	f->ranks[f->rank_count++] = rank;
	s->sink.rank(s->sink.user, rank);
}

void rank_line(struct logscan *s, const struct line *l, int64_t *ret_next)
{
	struct failures *f = &s->failures;

	/* torchrun lists other failures before the root cause, or after it. */
	if (span_find(l->text, "Failures:"))
		f->others = true;
	if (span_find(l->text, "Root Cause"))
		f->others = false;
	for (size_t i = 0; i < COUNT(rank_forms); i++) {
		const struct rank_form *form = &rank_forms[i];

		if (form->also && !span_find(l->text, form->also))
			continue;
		for (size_t at = 0; at < l->text.n; at++) {
			struct span rest = span_after(l->text, l->text.p + at);
			int64_t rank;

			if (*rest.p != *form->form || !form_fits(form->form, rest, &rank))
				continue;
			if (form->sure && !f->others)
				rank_tell(s, rank);
			else if (f->rank_maybe == INT_UNKNOWN)
				f->rank_maybe = rank;
			if (form->sure && span_find(l->text, "following error"))
				*ret_next = rank;
			return;
		}
	}
}

void fail_finish(struct logscan *s, int stream)
{
	struct stream *st = &s->streams[stream];

	for (size_t i = 0; i < SPEAKERS; i++)
		if (st->held[i].lines_left)
			failure_tell(s, st, &st->held[i]);
}

void rank_finish(struct logscan *s)
{
	struct failures *f = &s->failures;

	if (f->rank_count == 0 && f->rank_maybe != INT_UNKNOWN)
		rank_tell(s, f->rank_maybe);
}
