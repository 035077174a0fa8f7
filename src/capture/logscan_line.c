/* A line made readable: without colours, web entities and prefixes; lines escaped inside a line. */

#include "capture/logscan_priv.h"

#include <string.h>

/* Length of the control sequence at p (ECMA-48 CSI, OSC, or two bytes). */
static size_t escape_len(struct span s)
{
	size_t i = 2;

	if (s.n < 2)
		return s.n;
	if (s.p[1] == '[') {
		while (i < s.n && (unsigned char)s.p[i] >= 0x20 && (unsigned char)s.p[i] < 0x40)
			i++;
		return i < s.n ? i + 1 : i;
	}
	if (s.p[1] == ']') {
		while (i < s.n && s.p[i] != '\a' && s.p[i] != '\033')
			i++;
		return i < s.n && s.p[i] == '\a' ? i + 1 : i + 1 < s.n ? i + 2 : i;
	}
	return 2;
}

/* What a web page or Markdown makes of a character, and the character. */
static const struct entity {
	const char *text, *plain;
} entities[] = {
	{"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}, {"&#39;", "'"},
	{"&#x27;", "'"}, {"&#34;", "\""}, {"&#x22;", "\""}, {"&#96;", "`"}, {"&#x60;", "`"}, {"&grave;", "`"},
	{"&#60;", "<"}, {"&#62;", ">"}, {"&#38;", "&"}, {"&nbsp;", " "}, {"<code>", "`"}, {"</code>", "`"},
	{"\\`", "`"}, {"\u00a0", " "}, {"&rsquo;", "'"}, {"&lsquo;", "'"}, {"&#8217;", "'"}, {"&#8216;", "'"},
};

static const struct entity *entity_at(struct span s)
{
	/* && of code is none */
	if (s.n < 2 || s.p[1] == '&')
		return NULL;
	for (size_t i = 0; i < COUNT(entities); i++)
		if (s.p[0] == entities[i].text[0] && s.p[1] == entities[i].text[1] &&
		    span_starts(s, entities[i].text))
			return &entities[i];
	return NULL;
}

/* Length of a colour whose escape byte was lost on the way: [0;31m */
static size_t bare_colour_len(struct span s)
{
	size_t i = 1;

	while (i < s.n && i < 12 && (is_digit(s.p[i]) || s.p[i] == ';'))
		i++;
	return i > 1 && i < s.n && s.p[i] == 'm' ? i + 1 : 0;
}

/* Length of what does not belong at s, and what goes there instead. */
static size_t foreign_len(struct span s, const char **ret_plain)
{
	const struct entity *e;

	*ret_plain = "";
	if (*s.p == '\033')
		return escape_len(s);
	if (*s.p == '[')
		return bare_colour_len(s);
	e = entity_at(s);
	if (e == NULL)
		return 0;
	*ret_plain = e->plain;
	return strlen(e->text);
}

static const char *first_foreign(struct span s)
{
	const char *plain;

	for (; s.n; s = span_after(s, s.p + 1))
		switch (*s.p) {
		case '\033': case '[': case '&': case '<': case '\\': case '\xc2':
			if (foreign_len(s, &plain))
				return s.p;
		}
	return NULL;
}

static bool clean_once(struct span raw, struct buf *out)
{
	const char *at = first_foreign(raw);

	if (at == NULL)
		return false;
	for (; at; at = first_foreign(raw)) {
		const char *plain;
		size_t n = foreign_len(span_after(raw, at), &plain);

		buf_add(out, raw.p, (size_t)(at - raw.p));
		buf_str(out, plain);
		raw = span_after(raw, at + n);
	}
	buf_add(out, raw.p, raw.n);
	return true;
}

bool line_clean(struct span raw, struct buf *out)
{
	struct buf again = {0};

	if (!clean_once(raw, out))
		return false;
	/* &amp;lt; was written by two pages */
	if (clean_once((struct span){out->data, out->len}, &again)) {
		buf_done(out);
		*out = again;
	}
	return true;
}

static const char *const before_end[] = {"failed.", "call last):", "triggered", "=1.", "=1", "assertions."};
static const char *const after_end[] = {
	"  File ", "Traceback (", "    ", "\"", "CUDA kernel err", "RuntimeError: ",
};

bool line_is_escaped(struct span raw)
{
	const char *end = span_end(raw), *p = raw.p;

	while ((p = memchr(p, '\\', (size_t)(end - p)))) {
		struct span before = span_between(raw.p, p);

		while (p < end && *p == '\\')
			p++;
		if (p == end)
			return false;
		if (*p != 'n')
			continue;
		p++;
		for (size_t i = 0; i < COUNT(before_end); i++)
			if (span_ends(before, before_end[i]))
				return true;
		for (size_t i = 0; i < COUNT(after_end); i++)
			if (span_starts(span_between(p, end), after_end[i]))
				return true;
	}
	return false;
}

static bool eat_hex(struct span *s, size_t digits, uint32_t *ret_v)
{
	static const char hex[] = "0123456789abcdef";
	uint32_t v = 0;

	if (s->n < digits)
		return false;
	for (size_t i = 0; i < digits; i++) {
		char c = s->p[i];
		const char *digit = is_word(c) ? memchr(hex, c | 0x20, sizeof hex - 1) : NULL;

		if (digit == NULL)
			return false;
		v = v << 4 | (uint32_t)(digit - hex);
	}
	*s = span_after(*s, s->p + digits);
	*ret_v = v;
	return true;
}

void line_unescape(struct span raw, struct buf *out)
{
	static const char names[] = "nrtab\"'\\/", bytes[] = "\n\r\ta\b\"'\\/";

	while (raw.n) {
		char c = *raw.p;
		uint32_t v;

		raw = span_after(raw, raw.p + 1);
		if (c != '\\' || raw.n == 0) {
			buf_chr(out, c);
			continue;
		}
		const char *name = memchr(names, *raw.p, sizeof names - 1);
		struct span rest = span_after(raw, raw.p + 1);

		if (name) {
			buf_chr(out, bytes[name - names]);
			raw = rest;
		} else if ((*raw.p == 'u' || *raw.p == 'x') && eat_hex(&rest, *raw.p == 'u' ? 4 : 2, &v)) {
			span_add_utf8(out, v);
			raw = rest;
		} else {
			buf_chr(out, c);
		}
	}
}

/* Each takes its form off *s and tells the rank if there is one; false leaves *s alone. */

/* [rank3]:  [rank3]  [default3]:  (torchrun --tee, torch.distributed's exception hook) */
static bool eat_rank_tag(struct span *s, int64_t *rank)
{
	static const char *const names[] = {"[rank", "[default", "[trainer", "[worker"};
	struct span at = *s;

	for (size_t i = 0; i < COUNT(names); i++)
		if (span_eat(&at, names[i]))
			break;
	if (at.p == s->p || !span_eat_int(&at, rank) || !(span_eat(&at, "]:") || span_starts(at, "] ")))
		return false;
	span_eat(&at, "]");
	*s = at;
	return true;
}

/* [1,3]<stderr>: (mpirun --tag-output: job, rank) */
static bool eat_mpi_tag(struct span *s, int64_t *rank)
{
	struct span at = *s;
	int64_t job;

	if (!span_eat(&at, "[") || !span_eat_int(&at, &job) || !span_eat(&at, ",") ||
	    !span_eat_int(&at, rank) || !span_eat(&at, "]<") || !(span_eat(&at, "stderr>:") || span_eat(&at, "stdout>:")))
		return false;
	*s = at;
	return true;
}

/* (EngineCore pid=222)  (RayWorker pid=7, ip=10.0.0.2)  (VllmWorker rank=3 pid=12)  (Worker_TP3 pid=12) */
static bool eat_actor(struct span *s, int64_t *rank)
{
	const char *close = s->n && *s->p == '(' ? memchr(s->p, ')', s->n < 120 ? s->n : 120) : NULL;
	static const char *const ranks[] = {"rank=", "_TP"};

	if (close == NULL)
		return false;
	struct span in = span_between(s->p, close);

	if (!span_find(in, "pid="))
		return false;
	for (size_t i = 0; i < COUNT(ranks); i++) {
		const char *p = span_find(in, ranks[i]);
		struct span number = p ? span_after(in, p + strlen(ranks[i])) : in;

		if (p && span_eat_int(&number, rank))
			break;
	}
	*s = span_after(*s, close + 1);
	return true;
}

/* 15: (srun --label: the task) */
static bool eat_task(struct span *s, int64_t *rank)
{
	struct span at = *s;

	if (!span_eat_int(&at, rank) || !(span_starts(at, ": ")))
		return false;
	*s = span_after(at, at.p + 1);
	return true;
}

static bool eat_digits(struct span *s, size_t least, size_t most)
{
	size_t n = 0;

	while (n < s->n && n < most && is_digit(s->p[n]))
		n++;
	if (n < least)
		return false;
	*s = span_after(*s, s->p + n);
	return true;
}

/* 2024-08-30T17:28:57.137Z  [2024/08/30 17:28:57,137]  17:28:57 */
static bool eat_time(struct span *s, int64_t *rank)
{
	struct span at = *s, date;
	bool boxed = span_eat(&at, "[");

	(void)rank;
	date = at;
	if (eat_digits(&date, 2, 4) && (span_eat(&date, "-") || span_eat(&date, "/")) &&
	    eat_digits(&date, 2, 2) && (span_eat(&date, "-") || span_eat(&date, "/")) && eat_digits(&date, 2, 4) &&
	    (span_eat(&date, "T") || span_eat(&date, " ") || span_eat(&date, "_")))
		at = date;
	if (!eat_digits(&at, 2, 2) || !span_eat(&at, ":") || !eat_digits(&at, 2, 2) || !span_eat(&at, ":") ||
	    !eat_digits(&at, 2, 2))
		return false;
	if (span_eat(&at, ".") || span_eat(&at, ","))
		eat_digits(&at, 0, 9);
	if (!span_eat(&at, "Z") && (span_eat(&at, "+") || (span_starts(at, "-") && span_eat(&at, "-")))) {
		eat_digits(&at, 2, 4);
		if (span_eat(&at, ":"))
			eat_digits(&at, 2, 2);
	}
	if (boxed && !span_eat(&at, "]"))
		return false;
	if (at.n && *at.p != ' ' && *at.p != '|')
		return false;
	*s = at;
	return true;
}

/* E   RuntimeError: (pytest's margin; what is behind its three blanks keeps its own) */
static bool eat_pytest(struct span *s, int64_t *rank)
{
	(void)rank;
	if (!span_starts(*s, "E   "))
		return false;
	*s = span_after(*s, s->p + 3);
	return true;
}

static const struct prefix {
	bool (*eat)(struct span *s, int64_t *rank);
	bool speaker;   /* tells who speaks */
	bool outermost; /* too short a form to be looked for further in */
} prefixes[] = {
	{eat_rank_tag, true, false},
	{eat_mpi_tag, true, false},
	{eat_actor, true, false},
	{eat_task, true, true},
	{eat_time, false, false},
	{eat_pytest, false, false},
};

void line_strip(struct line *l)
{
	for (int round = 0; round < 4; round++) {
		struct span before = l->text;

		for (size_t i = 0; i < COUNT(prefixes) && l->text.p == before.p; i++) {
			int64_t rank = INT_UNKNOWN;

			if ((prefixes[i].outermost && round) || !prefixes[i].eat(&l->text, &rank))
				continue;
			if (l->rank == INT_UNKNOWN)
				l->rank = rank;
			if (prefixes[i].speaker)
				l->speaker = span_hash(span_between(before.p, l->text.p), l->speaker);
		}
		if (l->text.p == before.p)
			return;
		span_eat(&l->text, " ");
	}
}
