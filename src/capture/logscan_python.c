/*
 * The forms in which a Python traceback is printed: plain (behind any prefix of ranks, loggers and
 * exception groups), rich's boxes, IPython's of both generations, and faulthandler's.
 */

#include "capture/logscan_priv.h"

#include <stdlib.h>
#include <string.h>

enum { FOREIGN_LINES = 32 }; /* lines of others inside a traceback, after which its end is given up */

static struct trace *trace_of(struct stream *st, uint64_t speaker)
{
	for (size_t i = 0; i < SPEAKERS; i++)
		if (st->traces[i].kind != TRACE_FREE && st->traces[i].speaker == speaker)
			return &st->traces[i];
	return NULL;
}

static uint64_t trace_key(const struct traceback *t)
{
	uint64_t h = (uint64_t)t->rank;
	const struct place *frames = t->frames.v;

	for (size_t i = 0; i < t->frames.n; i++) {
		h = h * 31 + (uint64_t)frames[i].line;
		if (frames[i].file)
			h = span_hash((struct span){frames[i].file, strlen(frames[i].file)}, h);
	}
	if (t->type)
		h = span_hash((struct span){t->type, strlen(t->type)}, h);
	return t->text ? span_hash((struct span){t->text, strlen(t->text)}, h) : h;
}

/* The last call first becomes the last call last. */
static void frames_reverse(struct list *frames)
{
	struct place *v = frames->v;

	for (size_t i = 0; i < frames->n / 2; i++) {
		struct place other = v[i];

		v[i] = v[frames->n - 1 - i];
		v[frames->n - 1 - i] = other;
	}
}

/* Tells the traceback, unless the very same was told, and closes it. */
static void trace_end(struct logscan *s, struct stream *st, struct trace *t)
{
	bool headed = t->headed && t->t.frames.n;

	if (t->kind == TRACE_FAULT)
		frames_reverse(&t->t.frames);
	if ((headed || (t->t.type && t->kind != TRACE_FAULT)) && keys_add(&s->traces, trace_key(&t->t)))
		s->sink.traceback(s->sink.user, &t->t);
	record_done(&traceback_record, &t->t);
	free(t->prefix);
	buf_done(&t->wrapped);
	*t = (struct trace){0};
	st->open--;
}

static struct trace *trace_begin(struct logscan *s, int stream, const struct line *l, int kind)
{
	struct stream *st = &s->streams[stream];
	struct trace *t = trace_of(st, l->speaker);

	for (size_t i = 0; i < SPEAKERS && t == NULL; i++)
		if (st->traces[i].kind == TRACE_FREE)
			t = &st->traces[i];
	if (t == NULL)
		t = &st->traces[0];
	if (t->kind != TRACE_FREE)
		trace_end(s, st, t);
	record_init(&traceback_record, &t->t);
	t->kind = kind;
	t->speaker = l->speaker;
	t->t.rank = l->rank == INT_UNKNOWN ? st->next_rank : l->rank;
	st->next_rank = INT_UNKNOWN;
	st->open++;
	return t;
}

/* The exception that ends a traceback. */
static void trace_raise(struct logscan *s, int stream, const struct line *l, struct trace *t,
	struct span type, struct span message)
{
	int64_t rank = t->t.rank;

	free(t->t.type);
	t->t.type = span_text(type, TEXT_MAX);
	t->t.text = span_text(message, TEXT_MAX);
	trace_end(s, &s->streams[stream], t);
	fail_hold(s, stream, l, type, message, rank);
}

/* The first TRACE_ENDS frames and the last as many are kept. */
static struct place *frame_add(struct trace *t)
{
	struct list *frames = &t->t.frames;
	struct place *v = frames->v;

	t->foreign = 0;
	t->broken = false;
	t->wants_code = true;
	if (frames->n == 2 * TRACE_ENDS) {
		record_done(&place_record, &v[TRACE_ENDS]);
		memmove(&v[TRACE_ENDS], &v[TRACE_ENDS + 1], (TRACE_ENDS - 1) * sizeof *v);
		frames->n--;
	}
	return list_add(frames, &place_record);
}

static void frame_set(struct place *p, struct span file, int64_t line, struct span function)
{
	p->file = span_text_or_null(file, TEXT_MAX);
	p->line = line;
	p->function = span_text_or_null(function, TEXT_MAX);
}

static void set_code(struct trace *t, struct span code)
{
	struct place *v = t->t.frames.v;

	if (t->t.frames.n == 0 || !t->wants_code)
		return;
	t->wants_code = false;
	v[t->t.frames.n - 1].code = span_text_or_null(code, TEXT_MAX);
}

/*
 * File "PATH", line N, in FUNCTION; without the function for code that did not compile. faulthandler leaves
 * out the second comma.
 */
static bool plain_frame(struct span text, struct span *ret_file, int64_t *ret_line, struct span *ret_function)
{
	struct span s = span_trim(text);
	const char *close;

	if (!span_eat(&s, "File \""))
		return false;
	close = span_find(s, "\", line ");
	if (close == NULL)
		return false;
	*ret_file = span_between(s.p, close);
	s = span_after(s, close + strlen("\", line "));
	*ret_function = (struct span){NULL, 0};
	if (!span_eat_int(&s, ret_line))
		return false;
	if (span_eat(&s, ", in ") || span_eat(&s, " in "))
		*ret_function = s;
	else
		return span_trim(s).n == 0;
	return true;
}

/* A line that only points at a part of the code above it. */
static bool is_marker(struct span text)
{
	for (size_t i = 0; i < text.n; i++)
		if (!strchr(" ^~\t", text.p[i]) || text.p[i] == '\0')
			return false;
	return true;
}

static void foreign_line(struct logscan *s, int stream, struct trace *t)
{
	if (++t->foreign > FOREIGN_LINES)
		trace_end(s, &s->streams[stream], t);
}

static void plain_line(struct logscan *s, int stream, const struct line *l, struct trace *t, struct span body)
{
	struct span file, function, type, message;
	int64_t line;
	size_t indent = 0;

	while (indent < body.n && body.p[indent] == ' ')
		indent++;
	if (plain_frame(body, &file, &line, &function)) {
		frame_set(frame_add(t), file, line, function);
	} else if (is_marker(body)) {
		return;
	} else if (indent >= 4 && t->wants_code) {
		set_code(t, body);
	} else if (indent == 0 && t->t.frames.n && exception_read(body, t->broken, &type, &message)) {
		trace_raise(s, stream, l, t, type, message);
	} else {
		t->broken = t->broken || indent == 0;
		foreign_line(s, stream, t);
	}
}

/* Takes the first of these off s. */
static bool eat_any(struct span *s, const char *const *marks, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (span_eat(s, marks[i]))
			return true;
	return false;
}

/* PATH:N in FUNCTION, or in FUNCTION:N for code without a file. */
static bool rich_frame(struct span s, struct span *ret_file, int64_t *ret_line, struct span *ret_function)
{
	const char *in = span_find(s, " in ");

	if (in == NULL && span_starts(s, "in ")) {
		for (const char *p = span_end(s); p > s.p; p--) {
			struct span number = span_after(s, p);

			if (p[-1] == ':' && span_eat_int(&number, ret_line) && number.n == 0) {
				*ret_file = (struct span){NULL, 0};
				*ret_function = span_between(s.p + 3, p - 1);
				return true;
			}
		}
		return false;
	}
	if (in == NULL || *s.p == ' ')
		return false;
	for (const char *p = in; p > s.p; p--) {
		struct span number = span_between(p, in);

		if (p[-1] == ':' && span_eat_int(&number, ret_line) && number.n == 0) {
			*ret_file = span_between(s.p, p - 1);
			*ret_function = span_after(s, in + 4);
			return true;
		}
	}
	return false;
}

/* N │ CODE behind the pointer; guides of the indentation go too. */
static bool rich_code(struct span s, struct span *ret_code)
{
	static const char *const pointers[] = {"\u2771", ">"}, *const bars[] = {"\u2502", "|"};
	int64_t line;

	if (!eat_any(&s, pointers, COUNT(pointers)))
		return false;
	s = span_trim(s);
	if (!span_eat_int(&s, &line))
		return false;
	do
		s = span_trim(s);
	while (eat_any(&s, bars, COUNT(bars)));
	*ret_code = s;
	return true;
}

static void rich_line(struct logscan *s, int stream, const struct line *l, struct trace *t, struct span body)
{
	static const char *const bars[] = {"\u2502", "|"}, *const bottoms[] = {"\u2570", "+--", "\u2514"};
	struct span in = span_trim(body), file, function, code, type, message;
	int64_t line;

	if (eat_any(&in, bottoms, COUNT(bottoms))) {
		t->box_closed = true;
		return;
	}
	if (t->box_closed) {
		if (in.n && exception_read(in, t->foreign > 0, &type, &message))
			trace_raise(s, stream, l, t, type, message);
		else if (in.n)
			foreign_line(s, stream, t);
		return;
	}
	if (!eat_any(&in, bars, COUNT(bars))) {
		if (in.n)
			foreign_line(s, stream, t);
		return;
	}
	span_eat(&in, " ");
	for (size_t i = 0; i < COUNT(bars); i++)
		in.n -= span_ends(in, bars[i]) ? strlen(bars[i]) : 0;
	if (rich_code(in, &code)) {
		set_code(t, code);
		return;
	}
	if (in.n == 0 || *in.p == ' ')
		return;
	in = span_trim(in);
	if (in.n == 0)
		return;
	struct buf *path = &t->wrapped;

	if (++t->wraps > TRACE_WRAPS) {
		path->len = 0;
		t->wraps = 1;
	}
	buf_add(path, in.p, in.n);
	struct span whole = {path->data, path->len};

	if (rich_frame(whole, &file, &line, &function) || rich_frame(in, &file, &line, &function))
		frame_set(frame_add(t), file, line, function);
	else if (whole.n < TEXT_MAX && (memchr("/~<", *whole.p, 3) || span_find(whole, ":\\")))
		return;
	path->len = 0;
	t->wraps = 0;
}

/* f(args) to f; <module>() to <module>. */
static struct span without_arguments(struct span function)
{
	const char *open = span_find(function, "(");

	return span_trim(open && open > function.p ? span_between(function.p, open) : function);
}

/*
 * File PATH:N, in FUNCTION(ARGS)   Cell In[3], line 15   Input In [3], in <cell line: 1>()   (IPython >= 8)
 * PATH in FUNCTION(ARGS)   (before; the line is where the arrow points)
 */
static bool ipython_frame(struct span s, struct span *ret_file, int64_t *ret_line, struct span *ret_function)
{
	static const char *const cells[] = {"Cell In", "Input In"};
	struct span at = s;
	const char *p, *in = span_find(s, " in ");

	*ret_line = INT_UNKNOWN;
	*ret_function = (struct span){NULL, 0};
	if (in)
		*ret_function = without_arguments(span_after(s, in + 4));
	if (eat_any(&at, cells, COUNT(cells)) || (span_eat(&at, "File ") && *s.p == 'F')) {
		bool file = span_starts(s, "File ");
		const char *comma = span_find(s, ", line ");
		struct span place = file ? at : s;

		if (in && in > place.p && in[-1] == ',')
			place = span_between(place.p, in - 1);
		if (comma && comma < span_end(place)) {
			struct span number = span_after(s, comma + 7);

			span_eat_int(&number, ret_line);
			place = span_between(place.p, comma);
		} else if (file) {
			for (p = span_end(place); p > place.p && is_digit(p[-1]); p--)
				;
			struct span number = span_after(place, p);

			if (p == place.p || p[-1] != ':' || !span_eat_int(&number, ret_line))
				return false;
			place = span_between(place.p, p - 1);
		}
		*ret_file = place;
		return true;
	}
	if (in == NULL || in == s.p)
		return false;
	*ret_file = span_between(s.p, in);
	return (memchr("/~<", *s.p, 3) || (s.n > 2 && s.p[1] == ':')) && memchr(")>", span_end(s)[-1], 2);
}

/* ---> 42 CODE */
static bool ipython_arrow(struct span s, int64_t *ret_line, struct span *ret_code)
{
	s = span_trim(s);
	if (!span_eat(&s, "-"))
		return false;
	while (span_eat(&s, "-"))
		;
	if (!span_eat(&s, ">"))
		return false;
	s = span_trim(s);
	if (!span_eat_int(&s, ret_line))
		return false;
	*ret_code = s;
	return true;
}

static void ipython_line(struct logscan *s, int stream, const struct line *l, struct trace *t,
	struct span body)
{
	struct span file, function, code, type, message, text = span_trim(body);
	int64_t line;
	struct place *frames = t->t.frames.v;

	if (text.n == 0)
		return;
	if (ipython_arrow(body, &line, &code)) {
		if (t->t.frames.n && t->wants_code) {
			if (frames[t->t.frames.n - 1].line == INT_UNKNOWN)
				frames[t->t.frames.n - 1].line = line;
			set_code(t, code);
		}
	} else if (*body.p != ' ' && exception_read(body, false, &type, &message) && t->t.type &&
		   type.n == strlen(t->t.type) && memcmp(type.p, t->t.type, type.n) == 0) {
		trace_raise(s, stream, l, t, type, message);
	} else if (*body.p != ' ' && ipython_frame(text, &file, &line, &function)) {
		frame_set(frame_add(t), file, line, function);
	} else if (plain_frame(body, &file, &line, &function)) { /* SyntaxError */
		frame_set(frame_add(t), file, line, function);
	} else if (*body.p != ' ') {
		foreign_line(s, stream, t);
	}
}

static const char fault_error[] = "Fatal Python error: ", fault_thread[] = "hread 0x";

/*
 * A line of faulthandler's report (Python/traceback.c): the error, then for each thread "Thread 0x1 (most
 * recent call first):" (Current thread for the one that failed) and its frames, the last call first. False
 * when it is none.
 */
static bool fault_line(struct logscan *s, int stream, const struct line *l, struct trace *t)
{
	const char *error = span_find(l->text, fault_error);
	struct span file, function, text = span_trim(l->text);
	int64_t line;

	if (error && t->t.type == NULL) {
		t->t.type = xstrdup("Fatal Python error");
		t->t.text = span_text(span_after(l->text, error + sizeof fault_error - 1), TEXT_MAX);
	} else if ((l->words & WORD_FAULT) && span_find(text, fault_thread)) {
		t->current = span_find(text, "Current thread ") != NULL;
		t->headed = t->headed || t->current;
	} else if (plain_frame(text, &file, &line, &function)) {
		if (t->current)
			frame_set(frame_add(t), file, line, function);
	} else if (text.n) {
		trace_end(s, &s->streams[stream], t);
		return false;
	}
	return true;
}

/* The report that a line belongs to, begun by its error or its first thread; NULL when it is of none. */
static struct trace *fault_of(struct logscan *s, int stream, const struct line *l, struct trace *t)
{
	bool known = t && t->kind == TRACE_FAULT;

	if ((l->words & WORD_FAULT) && span_find(l->text, fault_error))
		return known && !t->headed && t->t.type == NULL ? t : trace_begin(s, stream, l, TRACE_FAULT);
	if (!known && (l->words & WORD_FAULT) && span_find(l->text, fault_thread))
		return trace_begin(s, stream, l, TRACE_FAULT);
	return known ? t : NULL;
}

/* The line without the prefix of the Traceback line; digits (of a clock) may differ. */
static struct span without_prefix(const struct trace *t, struct span text)
{
	size_t n = t->prefix ? strlen(t->prefix) : 0;

	if (text.n < n)
		return text;
	for (size_t i = 0; i < n; i++)
		if (t->prefix[i] != text.p[i] && !(is_digit(t->prefix[i]) && is_digit(text.p[i])))
			return text;
	return span_after(text, text.p + n);
}

/* Is there a frame of a box before or behind the words. */
static bool is_box(struct span before, struct span after)
{
	static const char *const edges[] = {"\u256d", "\u250c", "\u2500", "+-", "--"};

	for (size_t i = 0; i < COUNT(edges); i++)
		if (span_find(before, edges[i]) && span_find(after, i < 2 ? "\u2500" : edges[i]))
			return true;
	return span_find(before, "+--") && span_find(after, "--+");
}

static void header_line(struct logscan *s, int stream, const struct line *l, const char *words)
{
	static const char header[] = "Traceback (most recent call last)";
	struct span before = span_between(l->text.p, words);
	struct span after = span_after(l->text, words + sizeof header - 1);
	struct span type, message;
	struct trace *t;

	if (is_box(before, after)) {
		t = trace_begin(s, stream, l, TRACE_RICH);
	} else if (!span_starts(after, ":") && exception_read(span_trim(before), false, &type, &message)) {
		t = trace_begin(s, stream, l, TRACE_IPYTHON);
		t->t.type = span_text(type, TEXT_MAX);
	} else {
		t = trace_begin(s, stream, l, TRACE_PLAIN);
		t->prefix = xstrndup(before.p, before.n < TEXT_MAX ? before.n : 0);
		/* "  + Exception Group Traceback" is followed by lines behind "  | " */
		char *group = strstr(t->prefix, "+ Exception Group ");

		if (group) {
			*group = '|';
			group[2] = '\0';
		}
	}
	t->headed = true;
}

bool python_line(struct logscan *s, int stream, const struct line *l)
{
	struct trace *t = trace_of(&s->streams[stream], l->speaker);
	const char *words = l->words & WORD_TRACE ? words_find(&s->words, l->text, WORD_TRACE) : NULL;
	struct span file, function;
	int64_t line;

	if (words) {
		header_line(s, stream, l, words);
		return true;
	}
	struct trace *fault = fault_of(s, stream, l, t);

	if (fault)
		return fault_line(s, stream, l, fault);
	if (t == NULL && (l->words & WORD_FRAME) && span_starts(l->text, "  File \"") &&
	    plain_frame(l->text, &file, &line, &function))
		t = trace_begin(s, stream, l, TRACE_PLAIN); /* its head was not copied, or a SyntaxError */
	if (t == NULL)
		return false;
	int before = t->foreign;
	struct span body = without_prefix(t, l->text);

	/* These are indented, but no code. */
	if ((l->words & (WORD_THROW | WORD_RANK)) && !t->wants_code)
		return false;

	if (t->kind == TRACE_PLAIN)
		plain_line(s, stream, l, t, body);
	else if (t->kind == TRACE_RICH)
		rich_line(s, stream, l, t, body);
	else
		ipython_line(s, stream, l, t, body);
	/* A line of somebody else may be an error of its own. */
	return t->kind == TRACE_FREE || t->foreign <= before;
}

void python_finish(struct logscan *s, int stream)
{
	struct stream *st = &s->streams[stream];

	for (size_t i = 0; i < SPEAKERS; i++)
		if (st->traces[i].kind != TRACE_FREE)
			trace_end(s, st, &st->traces[i]);
}
