/* Bytes to lines, and each line to the readers that may find a fact in it. */

#include "capture/logscan_priv.h"

#include <stdlib.h>
#include <string.h>

enum { ESCAPE_DEPTH = 3 }; /* JSON in JSON in JSON */

struct logscan *logscan_new(const struct logscan_sink *sink)
{
	struct logscan *s = xcalloc(1, sizeof *s);

	s->sink = *sink;
	words_init(&s->words);
	s->failures.rank_maybe = INT_UNKNOWN;
	for (size_t i = 0; i < LOGSCAN_STREAMS; i++) {
		s->streams[i].half = -1;
		s->streams[i].next_rank = INT_UNKNOWN;
	}
	return s;
}

static void no_assertion(void *user, const struct assertion *a)
{
	(void)user, (void)a;
}

static void no_failure(void *user, const struct failure *f)
{
	(void)user, (void)f;
}

static void no_traceback(void *user, const struct traceback *t)
{
	(void)user, (void)t;
}

static void no_rank(void *user, int64_t rank)
{
	(void)user, (void)rank;
}

void logscan_free(struct logscan *s)
{
	if (s == NULL)
		return;
	/* What is unfinished goes nowhere. */
	s->sink = (struct logscan_sink){NULL, no_assertion, no_failure, no_traceback, no_rank};
	logscan_finish(s);
	for (size_t i = 0; i < LOGSCAN_STREAMS; i++)
		buf_done(&s->streams[i].kept);
	fold_done(&s->folds);
	free(s);
}

/* Text without assertions to the readers of everything else. */
static void read_text(struct logscan *s, int stream, struct line *l)
{
	const char *trace;

	fail_pass(s, stream, l);
	if ((l->words & WORD_DSA) && dsa_line(s, stream, l))
		return;
	trace = l->words & WORD_TRACE ? words_find(&s->words, l->text, WORD_TRACE) : NULL;
	if (trace && (l->words & WORD_FAIL)) {
		/* glued: an error that ended without a new line */
		struct line before = *l;

		before.text = span_between(l->text.p, trace);
		fail_line(s, stream, &before);
	}
	if (python_line(s, stream, l))
		return;
	if (l->words & (WORD_FAIL | WORD_ERROR | WORD_THROW | WORD_PLACE))
		fail_line(s, stream, l);
	if (l->words & WORD_RANK)
		rank_line(s, l, &s->streams[stream].next_rank);
}

static void read_around(struct logscan *s, int stream, const struct line *l, struct span text)
{
	struct line part = *l;

	part.text = span_trim(text);
	part.words = words_in(&s->words, part.text) & ~(unsigned)WORD_ASSERT;
	if (part.words)
		read_text(s, stream, &part);
}

static void read_lines(struct logscan *s, int stream, struct span raw, int depth, struct exact *ret_exact);

/* One line, whole and without its end. ret_exact is set when it is one assertion and nothing else. */
static void read_line(struct logscan *s, int stream, struct span raw, int depth, struct exact *ret_exact)
{
	struct stream *st = &s->streams[stream];
	struct line l = {.text = raw, .rank = INT_UNKNOWN, .words = words_in(&s->words, raw)};
	struct span before, after;
	struct exact exact = {0};
	struct buf clean = {0};

	if (l.words == 0 && st->open == 0)
		return;
	if (depth < ESCAPE_DEPTH && line_is_escaped(raw)) {
		line_unescape(raw, &clean);
		read_lines(s, stream, (struct span){clean.data, clean.len}, depth + 1, &exact);
		buf_done(&clean);
		return;
	}
	bool cleaned = line_clean(raw, &clean);

	if (cleaned) {
		l.text = (struct span){clean.data, clean.len};
		l.words = words_in(&s->words, l.text);
	}
	line_strip(&l);
	if ((l.words & (WORD_ASSERT | WORD_DSA)) == WORD_ASSERT &&
	    assert_line(s, stream, &l, &before, &after, &exact)) {
		bool alone = words_in(&s->words, before) == 0 && words_in(&s->words, after) == 0;

		read_around(s, stream, &l, before);
		read_around(s, stream, &l, after);
		if (exact.group && alone && !cleaned && depth == 0)
			*ret_exact = exact;
	} else {
		read_text(s, stream, &l);
	}
	buf_done(&clean);
}

/* Lines that end in a line feed or a carriage return (a progress bar's). */
static void read_lines(struct logscan *s, int stream, struct span raw, int depth, struct exact *ret_exact)
{
	while (raw.n) {
		const char *end = memchr(raw.p, '\n', raw.n), *back;
		struct span line = end ? span_between(raw.p, end) : raw;

		while ((back = memchr(line.p, '\r', line.n))) {
			read_line(s, stream, span_between(line.p, back), depth, ret_exact);
			line = span_after(line, back + 1);
		}
		if (line.n || end)
			read_line(s, stream, line, depth, ret_exact);
		raw = end ? span_after(raw, end + 1) : (struct span){NULL, 0};
	}
}

/* A line with its end, either by its shape or by reading it. */
static void take_line(struct logscan *s, int stream, struct span raw)
{
	struct exact exact = {0};
	struct span body = raw;

	if (fold_fast(&s->folds, raw.p, raw.n) == raw.n)
		return;
	while (body.n && (span_end(body)[-1] == '\n' || span_end(body)[-1] == '\r'))
		body.n--;
	bool plain = !memchr(body.p, '\r', body.n);

	read_lines(s, stream, body, 0, &exact);
	if (body.n == 0 && s->streams[stream].open)
		read_line(s, stream, body, 0, &exact);
	if (exact.group && plain)
		fold_learn(&s->folds, raw, &exact);
}

/*
 * LINE_WINDOW bytes without an end. Carriage returns end lines too; without any, assertions are read
 * and what may be the beginning of another is kept.
 */
static void take_window(struct logscan *s, int stream)
{
	struct stream *st = &s->streams[stream];
	struct span window = {st->kept.data, st->kept.len};
	struct line l = {.text = window, .rank = INT_UNKNOWN, .partial = true};
	const char *back = memrchr(window.p, '\r', window.n), *keep = span_end(window) - LINE_OVERLAP;
	struct span before, after;
	struct exact exact = {0};

	l.words = words_in(&s->words, window);
	if (back) {
		read_lines(s, stream, span_between(window.p, back), 0, &exact);
		buf_drop(&st->kept, (size_t)(back + 1 - window.p));
		return;
	}
	if ((l.words & WORD_ASSERT) && assert_line(s, stream, &l, &before, &after, &exact) && after.p > keep)
		keep = after.p;
	if (l.words & ~(unsigned)WORD_ASSERT)
		read_around(s, stream, &l, span_between(window.p, span_end(window) - LINE_OVERLAP));
	buf_drop(&st->kept, (size_t)(keep - window.p));
}

/* Adds to the unfinished line; nothing of it is a line feed. */
static void keep_bytes(struct logscan *s, int stream, const char *bytes, size_t len)
{
	struct buf *kept = &s->streams[stream].kept;

	while (len) {
		if (kept->len == LINE_WINDOW)
			take_window(s, stream);
		size_t n = LINE_WINDOW - kept->len < len ? LINE_WINDOW - kept->len : len;

		buf_add(kept, bytes, n);
		bytes += n;
		len -= n;
	}
}

static void feed_utf8(struct logscan *s, int stream, const char *bytes, size_t len)
{
	struct buf *kept = &s->streams[stream].kept;

	while (len) {
		size_t used = kept->len ? 0 : fold_fast(&s->folds, bytes, len);
		const char *end = used ? NULL : memchr(bytes, '\n', len);

		if (used) {
			bytes += used;
			len -= used;
			continue;
		}
		size_t n = end ? (size_t)(end - bytes) : len;

		if (end && kept->len == 0 && n <= LINE_WINDOW) {
			take_line(s, stream, (struct span){bytes, n + 1});
		} else {
			keep_bytes(s, stream, bytes, n);
			if (end) {
				buf_chr(kept, '\n');
				take_line(s, stream, (struct span){kept->data, kept->len});
				kept->len = 0;
			}
		}
		n += end != NULL;
		bytes += n;
		len -= n;
	}
}

/* UTF-16 as PowerShell's > writes it. */
static void feed_utf16(struct logscan *s, int stream, const char *bytes, size_t len)
{
	struct stream *st = &s->streams[stream];
	struct buf out = {0};

	for (size_t i = 0; i < len; i++) {
		uint32_t second = (unsigned char)bytes[i], first = (uint32_t)st->half;

		if (st->half < 0) {
			st->half = (int)second;
			continue;
		}
		uint32_t unit = st->encoding == BYTES_UTF16LE ? second << 8 | first : first << 8 | second;

		st->half = -1;
		if (unit >= 0xdc00 && unit < 0xe000 && st->high)
			span_add_utf8(&out, 0x10000 + ((st->high - 0xd800) << 10) + (unit - 0xdc00));
		else if (unit < 0xd800 || unit >= 0xe000)
			span_add_utf8(&out, unit);
		st->high = unit >= 0xd800 && unit < 0xdc00 ? unit : 0;
	}
	feed_utf8(s, stream, out.data, out.len);
	buf_done(&out);
}

static void feed_decoded(struct logscan *s, int stream, const char *bytes, size_t len)
{
	enum { UNIT = 32 * 1024 }; /* bounds what a caller's large chunk becomes as UTF-8 */

	if (s->streams[stream].encoding == BYTES_UTF8) {
		feed_utf8(s, stream, bytes, len);
		return;
	}
	for (; len; bytes += len < UNIT ? len : UNIT, len -= len < UNIT ? len : UNIT)
		feed_utf16(s, stream, bytes, len < UNIT ? len : UNIT);
}

static const struct {
	unsigned char bytes[3];
	size_t len;
	int encoding;
} byte_order_marks[] = {
	{{0xff, 0xfe}, 2, BYTES_UTF16LE},
	{{0xfe, 0xff}, 2, BYTES_UTF16BE},
	{{0xef, 0xbb, 0xbf}, 3, BYTES_UTF8},
};

/* Decides on the encoding as soon as the first bytes tell it; they are kept until then. */
static void settle_encoding(struct logscan *s, int stream, bool last)
{
	struct stream *st = &s->streams[stream];
	size_t skip = 0;
	bool open = false;

	st->encoding = BYTES_UTF8;
	for (size_t i = 0; i < COUNT(byte_order_marks); i++) {
		size_t n = byte_order_marks[i].len;
		size_t known = n < st->mark_len ? n : st->mark_len;
		bool fits = memcmp(st->mark, byte_order_marks[i].bytes, known) == 0;

		if (fits && n <= st->mark_len) {
			st->encoding = byte_order_marks[i].encoding;
			skip = n;
		}
		open = open || (fits && n > st->mark_len);
	}
	if (open && !last) {
		st->encoding = BYTES_UNKNOWN;
		return;
	}
	feed_decoded(s, stream, (const char *)st->mark + skip, st->mark_len - skip);
}

void logscan_feed(struct logscan *s, int stream, const char *bytes, size_t len)
{
	struct stream *st = &s->streams[stream];

	while (len && st->encoding == BYTES_UNKNOWN) {
		st->mark[st->mark_len++] = (unsigned char)*bytes++;
		len--;
		settle_encoding(s, stream, false);
	}
	if (len)
		feed_decoded(s, stream, bytes, len);
}

void logscan_flush(struct logscan *s)
{
	fold_flush(s);
}

void logscan_finish(struct logscan *s)
{
	for (int i = 0; i < LOGSCAN_STREAMS; i++) {
		struct stream *st = &s->streams[i];

		if (st->encoding == BYTES_UNKNOWN)
			settle_encoding(s, i, true);
		if (st->kept.len)
			take_line(s, i, (struct span){st->kept.data, st->kept.len});
		st->kept.len = 0;
		assert_finish(s, i);
		python_finish(s, i);
		fail_finish(s, i);
	}
	rank_finish(s);
	fold_flush(s);
}
