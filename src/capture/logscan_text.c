/* Spans of bytes, the words that make a line of log worth reading, and names made readable. */

#include "capture/logscan_priv.h"

#include <stdlib.h>
#include <string.h>

struct span span_between(const char *from, const char *to)
{
	return (struct span){from, to > from ? (size_t)(to - from) : 0};
}

struct span span_of(const char *text)
{
	return (struct span){text, text ? strlen(text) : 0};
}

const char *span_end(struct span s)
{
	return s.p + s.n;
}

const char *span_find(struct span s, const char *word)
{
	return s.n ? memmem(s.p, s.n, word, strlen(word)) : NULL;
}

struct span span_after(struct span s, const char *p)
{
	return span_between(p, span_end(s));
}

bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

struct span span_trim(struct span s)
{
	while (s.n && is_blank(s.p[s.n - 1]))
		s.n--;
	while (s.n && is_blank(*s.p)) {
		s.p++;
		s.n--;
	}
	return s;
}

bool span_starts(struct span s, const char *word)
{
	/* mostly the first byte tells */
	if (s.n == 0 || *s.p != *word)
		return *word == '\0';
	size_t n = strlen(word);

	return s.n >= n && memcmp(s.p, word, n) == 0;
}

bool span_ends(struct span s, const char *word)
{
	size_t n = strlen(word);

	return s.n >= n && memcmp(span_end(s) - n, word, n) == 0;
}

bool span_eat(struct span *s, const char *word)
{
	if (!span_starts(*s, word))
		return false;
	*s = span_after(*s, s->p + strlen(word));
	return true;
}

bool span_eat_int(struct span *s, int64_t *ret_v)
{
	size_t n = 0;
	int64_t v = 0;

	for (; n < s->n && n < 10 && is_digit(s->p[n]); n++)
		v = v * 10 + (s->p[n] - '0');
	if (n == 0 || n == 10)
		return false;
	*s = span_after(*s, s->p + n);
	*ret_v = v;
	return true;
}

bool span_same(struct span a, struct span b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Eight bytes at a time, mixed as in SplitMix64. */
uint64_t span_hash(struct span s, uint64_t seed)
{
	uint64_t h = seed ^ (s.n + 1) * 0x9e3779b97f4a7c15u;

	for (size_t i = 0; i < s.n; i += 8) {
		uint64_t part = 0;

		memcpy(&part, s.p + i, s.n - i < 8 ? s.n - i : 8);
		h = (h ^ part) * 0xbf58476d1ce4e5b9u;
		h ^= h >> 29;
	}
	h *= 0x94d049bb133111ebu;
	return h ^ h >> 31;
}

/* Length of the valid UTF-8 sequence at p, 0 when it is none. */
static size_t utf8_len(const unsigned char *p, size_t n)
{
	size_t len = *p < 0x80 ? 1 : *p >= 0xc2 && *p < 0xe0 ? 2 : (*p & 0xf0) == 0xe0 ? 3 :
		*p >= 0xf0 && *p < 0xf5 ? 4 : 0;

	if (len == 0 || len > n)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	/* overlong forms, surrogates, and what lies beyond Unicode */
	if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) || (*p == 0xf0 && p[1] < 0x90) ||
	    (*p == 0xf4 && p[1] > 0x8f))
		return 0;
	return len;
}

void span_add_utf8(struct buf *out, uint32_t c)
{
	if (c < 0x80) {
		buf_chr(out, (char)c);
		return;
	}
	int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;

	buf_chr(out, (char)((0xf80 >> more & 0xff) | c >> 6 * more));
	while (more--)
		buf_chr(out, (char)(0x80 | (c >> 6 * more & 0x3f)));
}

char *span_text(struct span s, size_t max)
{
	struct span in = span_trim(s);
	char *out = xmalloc((in.n < max ? in.n : max) + 1);
	size_t n = 0;

	for (size_t i = 0; i < in.n;) {
		size_t len = utf8_len((const unsigned char *)in.p + i, in.n - i);

		if (n + (len ? len : 1) > max)
			break;
		if (len == 0)
			out[n++] = '?';
		else if (len > 1 || (unsigned char)in.p[i] >= 0x20)
			n = (size_t)((char *)mempcpy(out + n, in.p + i, len) - out);
		else if (in.p[i] == '\t')
			out[n++] = ' ';
		i += len ? len : 1;
	}
	out[n] = '\0';
	return out;
}

void span_keep(char **slot, struct span text, size_t max)
{
	free(*slot);
	*slot = span_text(text, max);
}

char *span_text_or_null(struct span s, size_t max)
{
	char *text = span_text(s, max);

	if (*text)
		return text;
	free(text);
	return NULL;
}

bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool is_word(char c)
{
	return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

size_t quote_at(const char *p, const char *end)
{
	/* What stands for a back-tick in logs that went through a page or an editor. */
	static const char *const quotes[] = {
		"`", "'", "\"", "\u2018", "\u2019", "\u00b4", "\u201c", "\u201d",
	};

	for (size_t i = 0; i < COUNT(quotes); i++)
		if (span_starts(span_between(p, end), quotes[i]))
			return strlen(quotes[i]);
	return 0;
}

static const struct word {
	const char *text;
	enum word_kind kind;
} words[] = {
	{"ssertion", WORD_ASSERT},
	{"thread: [", WORD_ASSERT}, /* mixed lines may hold no more */
	{"Traceback (most recent call last)", WORD_TRACE},
	{"(most recent call first)", WORD_FAULT},
	{"Fatal Python error: ", WORD_FAULT},
	{"File \"", WORD_FRAME},
	{"THCudaCheck FAIL", WORD_FAIL},
	{"cuda runtime error", WORD_FAIL},
	{"CUDA error", WORD_FAIL},
	{"CUDA Error", WORD_FAIL},
	{"CUDA driver error", WORD_FAIL},
	{"CUDA_ERROR_", WORD_FAIL},
	{"Cuda failure", WORD_FAIL},
	{"device-side assert triggered", WORD_FAIL},
	{"illegal memory access", WORD_FAIL},
	{"illegal instruction was encountered", WORD_FAIL},
	{"misaligned address", WORD_FAIL},
	{"unspecified launch failure", WORD_FAIL},
	{"no kernel image", WORD_FAIL},
	{"CUDA out of memory", WORD_FAIL},
	{"HIP out of memory", WORD_FAIL},
	{"XPU out of memory", WORD_FAIL},
	{": out of memory", WORD_FAIL},
	{"CUBLAS_STATUS_", WORD_FAIL},
	{"CUDNN_STATUS_", WORD_FAIL},
	{"CUSPARSE_STATUS_", WORD_FAIL},
	{"CUSOLVER_STATUS_", WORD_FAIL},
	{"CUFFT_", WORD_FAIL},
	{"cuDNN error", WORD_FAIL},
	{"cuFFT error", WORD_FAIL},
	{"Triton Error", WORD_FAIL},
	{"NCCL WARN", WORD_FAIL},
	{"NCCL error", WORD_FAIL},
	{"NCCL Error", WORD_FAIL},
	{"watchdog thread terminated", WORD_FAIL},
	{"Watchdog caught collective operation timeout", WORD_FAIL},
	{"HIP error", WORD_FAIL},
	{"hipError", WORD_FAIL},
	{"HSA_STATUS_ERROR", WORD_FAIL},
	{"Memory access fault by GPU", WORD_FAIL},
	{"Error: ", WORD_ERROR},
	{"Exception: ", WORD_ERROR},
	{"asynchronously reported", WORD_LATE},
	{"assertion failure message = ", WORD_DSA},
	{"containing assertion = ", WORD_DSA},
	{"that failed assertion = ", WORD_DSA},
	{"(local_rank", WORD_RANK},
	{"local_rank: ", WORD_RANK},
	{" crashed", WORD_RANK},
	{" terminated", WORD_RANK},
	{"process rank ", WORD_RANK},
	{"srun: error", WORD_RANK},
	{"exits with return code", WORD_RANK},
	{"Failures:", WORD_RANK},
	{"Root Cause", WORD_RANK},
	{"terminate called after throwing", WORD_THROW},
	{"what():", WORD_THROW},
	{" at line ", WORD_PLACE},
};

static size_t pair_of(const char *p)
{
	return (size_t)(unsigned char)p[0] << 8 | (unsigned char)p[1];
}

void words_init(struct words *w)
{
	for (size_t i = 0; i < COUNT(words); i++) {
		size_t pair = pair_of(words[i].text);

		w->next[i + 1] = w->first[pair];
		w->first[pair] = (uint8_t)(i + 1);
		w->len[i + 1] = (uint8_t)strlen(words[i].text);
		memcpy(&w->begin[i + 1], words[i].text, sizeof *w->begin);
	}
}

/* The kinds of the words that begin at p, which is not the last byte of text. */
static unsigned words_at(const struct words *w, struct span text, const char *p)
{
	size_t left = (size_t)(span_end(text) - p);
	unsigned kinds = 0;

	for (uint8_t k = w->first[pair_of(p)]; k; k = w->next[k])
		if (left >= w->len[k] && memcmp(p, &w->begin[k], sizeof *w->begin) == 0 &&
		    memcmp(p, words[k - 1].text, w->len[k]) == 0)
			kinds |= words[k - 1].kind;
	return kinds;
}

unsigned words_in(const struct words *w, struct span text)
{
	unsigned kinds = 0;

	for (size_t i = 0; i + 1 < text.n; i++)
		if (w->first[pair_of(text.p + i)])
			kinds |= words_at(w, text, text.p + i);
	return kinds;
}

const char *words_find(const struct words *w, struct span text, enum word_kind kind)
{
	for (size_t i = 0; i + 1 < text.n; i++)
		if (w->first[pair_of(text.p + i)] && (words_at(w, text, text.p + i) & kind))
			return text.p + i;
	return NULL;
}

bool keys_add(struct keys *k, uint64_t key)
{
	size_t i = key & (COUNT(k->slots) - 1);

	key |= (uint64_t)1 << 63; /* 0 is a free slot */
	for (; k->slots[i]; i = (i + 1) & (COUNT(k->slots) - 1))
		if (k->slots[i] == key)
			return false;
	if (k->count == KEYS_MAX)
		return false;
	k->slots[i] = key;
	k->count++;
	return true;
}

/* Does p stand behind a character of U+2500 to U+25FF, of which progress bars and boxes are made? */
static bool is_bar(const char *start, const char *p)
{
	return p - start >= 3 && memcmp(p - 3, "\xe2\x94", 2) >= 0 && memcmp(p - 3, "\xe2\x97", 2) <= 0;
}

bool path_goes_on(const char *start, const char *p)
{
	unsigned char c = (unsigned char)p[-1];

	return !is_bar(start, p) && (is_word((char)c) || c >= 0x80 || memchr("/\\.-+~%@=", c, 9));
}

const char *path_start(const char *start, const char *end)
{
	const char *p = end;

	if (p > start && p[-1] == '>') {
		/* no colon inside: of a line, each part is looked at once */
		while (p > start && *p != '<' && p[-1] != ':')
			p--;
		return *p == '<' ? p : end;
	}
	while (p > start && path_goes_on(start, p))
		p--;
	/* C:\ */
	if (p - start >= 2 && p[-1] == ':' && p < end && (*p == '\\' || *p == '/') && is_word(p[-2]) &&
	    !is_digit(p[-2]) && (p - start == 2 || !is_word(p[-3])))
		p -= 2;
	return p;
}

char *name_source(struct span path)
{
	/* Where PyTorch's own tree begins in a path, whatever machine built it. */
	static const char *const roots[] = {"aten/", "c10/", "torch/csrc/", "torch/lib/"};
	char *text = span_text(path, TEXT_MAX), *kept = NULL;

	for (char *p = text; *p; p++)
		if (*p == '\\')
			*p = '/';
	for (size_t i = 0; i < COUNT(roots) && kept == NULL; i++)
		for (char *p = text; (p = strstr(p, roots[i])); p++)
			/* an environment may be named torch: torch/lib/python3.8/site-packages */
			if ((p == text || p[-1] == '/') && !starts_with(p, "torch/lib/python"))
				kept = p;
	if (kept == NULL)
		return text;
	kept = xstrdup(kept);
	free(text);
	return kept;
}

/* Leaves out template arguments and everything like them. */
static char *without_templates(struct span name)
{
	char *out = xmalloc(name.n + 1);
	size_t n = 0;
	int depth = 0;

	for (size_t i = 0; i < name.n; i++) {
		depth += name.p[i] == '<';
		if (depth == 0)
			out[n++] = name.p[i];
		depth -= name.p[i] == '>' && depth > 0;
	}
	out[n] = '\0';
	return out;
}

/* The last component of a::b::c, and for operator() the one before it too. */
static char *last_components(char *name)
{
	char *last = strrchr(name, ':');

	last = last ? last + 1 : name;
	if (strcmp(last, "operator()") != 0 || last - name < 3)
		return xstrdup(last);
	last[-2] = '\0';
	char *owner = strrchr(name, ':');

	owner = owner ? owner + 1 : name;
	/* a lambda's type has no name that says anything */
	if (*owner == '\0' || strpbrk(owner, "[({ ") || strstr(name, "lambda"))
		return xstrdup("operator()");
	return xasprintf("%s::operator()", owner);
}

char *name_kernel(struct span signature)
{
	static const char call[] = "operator()", anonymous[] = "(anonymous namespace)";
	struct span s = span_trim(signature);
	const char *with = span_find(s, " [with "), *op, *end = NULL, *start;
	int depth = 0;

	if (with)
		s.n = (size_t)(with - s.p);
	if (!span_find(s, "("))
		return span_text(s, CONDITION_MAX);
	if (span_starts(s, "lambda "))
		return xstrdup(call);
	op = span_find(s, call);
	start = s.p;
	for (const char *p = s.p; p < span_end(s); p++) {
		struct span rest = span_after(s, p);

		if (p == op) {
			end = p + sizeof call - 1;
			break;
		}
		if (span_starts(rest, anonymous))
			p += sizeof anonymous - 2;
		else if (depth == 0 && op == NULL && *p == '(')
			end = p;
		else if (depth == 0 && *p == ' ')
			start = p + 1;
		else
			depth += *p == '<' ? 1 : *p == '>' && depth > 0 && p[-1] != '-' ? -1 : 0;
		if (end)
			break;
	}
	if (end == NULL || end <= start)
		return span_text(signature, CONDITION_MAX);
	while (start < end && (*start == '*' || *start == '&'))
		start++;
	char *name = without_templates(span_between(start, end));
	char *last = last_components(name);
	char *kept = span_text(*last ? span_of(last) : signature, CONDITION_MAX);

	free(name);
	free(last);
	return kept;
}
