#include "diagnose/verdict.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* How one bad value is told, by cause: "label 10 in sample 19985 of train_set, but the model has classes
 * 0 to 9". `range` is used when both ends are known, `else_` when they are not. */
static const struct value_words {
	const char *cause, *noun, *range, *else_;
} value_words[] = {
	{"label_range", "label", "the model has classes %s to %s", "the model has no such class"},
	{"embedding_range", "index", "the embedding has rows %s to %s", "the embedding has no such row"},
	{"index_range", "index", "the dimension it points into allows %s to %s", "there is no such position"},
	{"bce_input_range", "value", "binary cross entropy allows %s to %s", "binary cross entropy does not allow it"},
	{"probability_invalid", "value", "probabilities must be from %s to %s",
	 "probabilities must be finite, not negative, and not all zero"},
	{"nan", "value", "only %s to %s is allowed", "numbers that are not finite cannot be used here"},
};

static const struct value_words *words_for(const char *cause)
{
	for (size_t i = 0; i < COUNT(value_words); i++) {
		if (strcmp(value_words[i].cause, cause) == 0)
			return &value_words[i];
	}
	return NULL;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *back = strrchr(path, '\\');

	return slash > back ? slash + 1 : back ? back + 1 : path;
}

static void add_sample(const struct scan *s, struct buf *b)
{
	if (s->samples.n == 0)
		return;
	buf_fmt(b, " in sample %" PRId64, s->samples.v[0]);
	if (s->dataset)
		buf_fmt(b, " of %s", s->dataset);
}

/* "; launched at train.py:42, not at line 57 where Python says" */
static void add_place(const struct verdict *v, const char *how, struct buf *b)
{
	const struct place *at = &v->location, *said = &v->reported_location;

	if (at->file == NULL || at->line == INT_UNKNOWN)
		return;
	buf_fmt(b, "; %s %s:%" PRId64, how, base_name(at->file), at->line);
	if (said->file == NULL || said->line == INT_UNKNOWN)
		return;
	if (strcmp(base_name(said->file), base_name(at->file)) == 0)
		buf_fmt(b, ", not at line %" PRId64 " where Python says", said->line);
	else
		buf_fmt(b, ", not at %s:%" PRId64 " where Python says", base_name(said->file), said->line);
}

static void say_value(const struct verdict *v, const struct value_words *w, struct buf *b)
{
	char value[32], low[32], high[32];

	buf_fmt(b, "%s %s", w->noun, value_text(v->bad_values.v[0], value));
	if (v->data.samples.n)
		add_sample(&v->data, b);
	else if (v->tensor.name)
		buf_fmt(b, " in %s", v->tensor.name);
	buf_str(b, ", but ");
	if (value_known(v->low) && value_known(v->high)) {
		char *range = xasprintf(w->range, value_text(v->low, low), value_text(v->high, high));

		buf_str(b, range);
		free(range);
	} else {
		buf_str(b, w->else_);
	}
}

/* The first letter small, unless the word is a name: "NaN", "CUDA". */
static void add_lower(struct buf *b, const char *text)
{
	size_t at = b->len;

	buf_str(b, text);
	if (isupper((unsigned char)text[0]) && !isupper((unsigned char)text[1]))
		b->data[at] = (char)tolower((unsigned char)text[0]);
}

static char *summary(const struct verdict *v, const struct fault *f, const struct finding *seen)
{
	const struct value_words *w = words_for(v->cause);
	struct buf b = {0};

	if (w && v->bad_values.n && seen) {
		say_value(v, w, &b);
	} else {
		add_lower(&b, v->title);
		if (seen && seen->detail)
			buf_fmt(&b, ": %s", seen->detail);
		else if (!seen && f->log.words)
			buf_fmt(&b, ": %s", f->log.words);
		else if (!seen && f->assertion && v->op)
			buf_fmt(&b, ": a check in the kernel of %s failed", v->op);
		else if (!seen && f->assertion && f->log.condition)
			buf_fmt(&b, ": a kernel checks that %s", f->log.condition);
		else if (!seen && strcmp(f->kind, "python_error") == 0 && f->message)
			buf_fmt(&b, ": %s", f->message);
	}
	add_place(v, f->late || (seen && w) ? "launched at" : seen ? "at" : "raised at", &b);
	return buf_take(&b);
}

static char *why(const struct verdict *v, const struct model *m, const struct fault *f, const struct finding *seen)
{
	struct buf b = {0};

	buf_str(&b, catalog_cause(v->cause)->meaning);
	if (f->assertion && f->log.condition)
		buf_fmt(&b, " The kernel checks that %s.", f->log.condition);
	if (seen && seen->detail && v->bad_values.n)
		buf_fmt(&b, " Seen: %s.", seen->detail);
	if (seen && !seen->seen)
		buf_str(&b, " The value itself was not seen.");
	/* IEEE to two's complement on x86-64: what has no integer becomes the smallest. */
	for (size_t i = 0; i < v->bad_values.n; i++) {
		if (v->bad_values.v[i].kind == VALUE_INT && v->bad_values.v[i].i == INT64_MIN) {
			buf_str(&b, " The smallest integer of all is what NaN or an infinity becomes when it is cast to an "
				"integer: look at the values before the cast.");
			break;
		}
	}
	if (seen && strcmp(v->confidence, "likely") == 0 && seen->seen)
		buf_str(&b, " The assertion that was printed is of another operation, so there may be a second fault.");
	if (f->late && v->reported_location.file && v->location.file)
		buf_str(&b, " Python names a later line because the GPU works behind Python's back: the error is "
			"noticed at the next call that waits for it.");
	if (f->late && v->reported_location.file && !v->location.file)
		buf_str(&b, " The line in the traceback is where Python noticed it, and the fault can lie in an earlier "
			"call.");
	if (strcmp(v->cause, "internal") == 0 && f->assertion && model_run(m, "cpu_rerun"))
		buf_str(&b, " On the CPU every label and index that could be looked at was in range: your data is not at "
			"fault as far as can be seen.");
	return buf_take(&b);
}

/* The text that stands for a placeholder; NULL when it is not known. Written into scratch if need be. */
static const char *placeholder(const struct verdict *v, const struct finding *seen, const char *name, size_t len,
			       char scratch[static 128])
{
	static const char *const names[] = {"name", "value", "low", "high", "op", "shape", "expect"};
	struct buf b = {0};
	size_t k = 0;

	while (k < COUNT(names) && (strlen(names[k]) != len || memcmp(names[k], name, len) != 0))
		k++;
	switch (k) {
	case 0:
		return v->tensor.name ? v->tensor.name : v->tensor.role;
	case 1:
		return v->bad_values.n ? value_text(v->bad_values.v[0], scratch) : NULL;
	case 2:
		return value_known(v->low) ? value_text(v->low, scratch) : NULL;
	case 3:
		return value_known(v->high) ? value_text(v->high, scratch) : NULL;
	case 4:
		return v->op;
	case 5:
		if (v->tensor.shape.v == NULL)
			return NULL;
		for (size_t i = 0; i < v->tensor.shape.n && b.len < 100; i++)
			buf_fmt(&b, "%s%" PRId64, i ? ", " : "[", v->tensor.shape.v[i]);
		buf_str(&b, v->tensor.shape.n ? "]" : "[]");
		strncpy(scratch, b.data, 127);
		scratch[127] = '\0';
		buf_done(&b);
		return scratch;
	case 6:
		return seen ? seen->expect : NULL;
	}
	return NULL;
}

/* NULL when a placeholder is not known. */
static char *fill(const struct verdict *v, const struct finding *seen, const char *text)
{
	struct buf b = {0};

	while (*text) {
		size_t plain = strcspn(text, "{"), len = text[plain] ? strcspn(text + plain, "}") : 0;
		char scratch[128];

		buf_add(&b, text, plain);
		text += plain;
		if (*text == '\0')
			break;
		const char *value = placeholder(v, seen, text + 1, len - 1, scratch);

		if (value == NULL) {
			buf_done(&b);
			return NULL;
		}
		buf_str(&b, value);
		text += text[len] ? len + 1 : len;
	}
	return buf_take(&b);
}

void verdict_words(struct verdict *v, const struct model *m, const struct fault *f, const struct finding *seen)
{
	const struct cause *c = catalog_cause(v->cause);

	v->title = c->title;
	v->summary = summary(v, f, seen);
	v->why = why(v, m, f, seen);
	if (!seen && f->log.fix)
		v->fix = xstrdup(f->log.fix);
	else
		v->fix = fill(v, seen, c->fix);
	if (v->fix == NULL)
		v->fix = xstrdup(c->fix_plain);
}
