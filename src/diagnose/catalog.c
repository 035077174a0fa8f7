#include "diagnose/catalog.h"

#include <ctype.h>
#include <string.h>

#include "diagnose/pattern.h"
#include "diagnose/site.h"

static bool identifier(int c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* The first kind of condition that fits, of a certain cause or, with NULL, of any. */
static const struct condition_row *find_condition(const struct sighting *s, const char *cause,
	struct pattern_values *values)
{
	char pattern[SITE_CONDITION_MAX];

	for (size_t i = 0; s->full[0] && i < condition_rows_count; i++) {
		const struct condition_row *row = &condition_rows[i];

		if (cause && strcmp(cause, row->cause) != 0)
			continue;
		site_squeeze(row->condition, pattern);
		if (pattern_whole(pattern, s->full, values) || pattern_whole(pattern, s->bare, values))
			return row;
	}
	return NULL;
}

static const char *find_kernel_words(const struct sighting *s)
{
	for (size_t i = 0; i < kernel_rows_count; i++) {
		const struct kernel_row *row = &kernel_rows[i];

		if (pattern_whole(row->file, s->base, NULL) &&
		    (pattern_whole(row->kernel, s->kernel ? s->kernel : "", NULL) ||
		     (s->signature && pattern_within(row->kernel, s->signature, NULL))))
			return row->words;
	}
	return NULL;
}

static struct value cell_value(const char *cell)
{
	struct value v = {0};

	if (cell)
		pattern_number(cell, &v);
	return v;
}

static void use_values(struct explanation *out, const struct pattern_values *v)
{
	if (value_known(v->bad))
		out->bad = v->bad;
	if (value_known(v->low))
		out->low = v->low;
	if (value_known(v->high))
		out->high = v->high;
}

static void use_condition(struct explanation *out, const struct condition_row *row,
	const struct pattern_values *values)
{
	out->condition = row->words;
	out->low = cell_value(row->low);
	out->high = cell_value(row->high);
	use_values(out, values);
}

static void use_site(struct explanation *out, const struct site_match *c)
{
	out->grade = c->grade;
	out->cause = c->row->cause;
	out->op = c->row->ops[0];
	out->alternatives = out->op ? c->row->ops + 1 : NULL;
	out->argument = c->row->argument;
	out->range = c->row->range;
}

/* The causes that a known place in the code does not pin down any further. */
static bool vague(const char *cause)
{
	return strcmp(cause, "other") == 0 || strcmp(cause, "unknown") == 0 || strcmp(cause, "internal") == 0;
}

static const char *steps_of(const char *cause)
{
	const struct cause *c = catalog_cause(cause);

	return c ? c->steps : NULL;
}

/* What a condition says by itself; a known kernel still knows better which function it serves. */
static void use_kind(struct explanation *out, const struct condition_row *row)
{
	out->grade = CATALOG_CONDITION;
	out->cause = row->cause;
	out->op = out->op ? out->op : row->op;
	out->argument = out->argument ? out->argument : row->argument;
}

/* CUDA_KERNEL_ASSERT_PRINTF and Triton print values or whole sentences. */
static void read_printed_values(const char *text, struct explanation *out)
{
	struct pattern_values values;

	for (size_t i = 0; text && i < text_rows_count; i++)
		if (strcmp(text_rows[i].kind, "device_assert") == 0 &&
		    pattern_within(text_rows[i].pattern, text, &values)) {
			use_values(out, &values);
			return;
		}
}

bool catalog_explain_assertion(const struct assertion *a, struct explanation *out)
{
	struct pattern_values values = {0};
	struct sighting s;

	*out = (struct explanation){.grade = CATALOG_NOTHING, .kind = "device_assert", .cause = "unknown"};
	site_sight(a, &s);
	struct site_match site = site_find(&s, false);
	bool by_condition = site.grade > CATALOG_KERNEL;

	if (by_condition) {
		struct site_match wild = site_find(&s, true);

		if (wild.row)
			site = wild;
	}
	if (site.row)
		use_site(out, &site);
	const struct condition_row *kind = site.row ? find_condition(&s, out->cause, &values) : NULL;

	if (!kind && by_condition && vague(out->cause) && (kind = find_condition(&s, NULL, &values)) != NULL)
		use_kind(out, kind);
	if (kind)
		use_condition(out, kind, &values);
	read_printed_values(a->text, out);
	out->kernel = find_kernel_words(&s);
	if (!out->condition)
		out->condition = out->range;
	if (strcmp(out->cause, "unknown") != 0)
		out->confidence = by_condition || vague(out->cause) ? "possible" : "likely";
	out->steps = steps_of(out->cause);
	return out->grade != CATALOG_NOTHING;
}

bool catalog_explain_failure(const char *type, const char *text, struct explanation *out)
{
	const char *last = type && strrchr(type, '.') ? strrchr(type, '.') + 1 : type;

	*out = (struct explanation){.grade = CATALOG_NOTHING, .kind = type ? "python_error" : "none",
		.cause = "unknown"};
	for (size_t i = 0; i < text_rows_count; i++) {
		const struct text_row *row = &text_rows[i];
		struct pattern_values values;

		if (!pattern_whole(row->type, last ? last : "", NULL) ||
		    !pattern_within(row->pattern, text ? text : "", &values))
			continue;
		out->kind = row->kind;
		out->cause = row->cause;
		out->confidence = strcmp(row->cause, "unknown") == 0 ? NULL : row->confidence;
		out->op = row->op;
		out->argument = row->argument;
		out->follow_on = row->follow_on;
		out->words = row->words;
		out->fix = row->fix;
		use_values(out, &values);
		out->steps = steps_of(out->cause);
		return true;
	}
	out->steps = steps_of(out->cause);
	return false;
}

/* Names of modules and of inner functions, for the function that they end in. */
static const struct alias {
	const char *name, *function;
} aliases[] = {
	{"Embedding", "embedding"},
	{"EmbeddingBag", "embedding_bag"},
	{"CrossEntropyLoss", "cross_entropy"},
	{"cross_entropy_loss", "cross_entropy"},
	{"NLLLoss", "nll_loss"},
	{"nll_loss_nd", "nll_loss"},
	{"nll_loss2d", "nll_loss"},
	{"BCELoss", "binary_cross_entropy"},
	{"index_put", "__setitem__"},
	{"multinomial", "sample"},
};

/* Does code call the function of this name: as itself, in place (name_), or fused into a Triton kernel. */
static bool calls(const char *code, const char *name, size_t len)
{
	for (const char *s = code; *name && (s = strstr(s, name)) != NULL; s++) {
		const char *start = s, *end = s + len;

		end += *end == '_' && !identifier(end[1]);
		if ((s == code || !identifier(s[-1])) && !identifier(*end))
			return true;
		while (start > code && identifier(start[-1]))
			start--;
		if (starts_with(start, "triton_") && s[-1] == '_' && *end == '_')
			return true;
	}
	return false;
}

/* x[i] with anything that can be indexed before the bracket; x[i] = v when it is written to. */
static bool indexes(const char *code, bool written)
{
	const char *open = code, *close = strrchr(code, ']');

	while ((open = strchr(open, '[')) != NULL) {
		if (open > code && (identifier(open[-1]) || open[-1] == ')' || open[-1] == ']'))
			break;
		open++;
	}
	if (!open || !close || close < open)
		return false;
	const char *after = strstr(open, "] = ");

	return written ? after != NULL && strchr(after + 3, '[') == NULL
				   : after == NULL || strchr(after + 3, '[');
}

/* A module that a program calls its embedding: self.word_embeddings(ids). */
static bool calls_embedding(const char *code)
{
	for (const char *s = code; (s = strstr(s, "mbed")) != NULL; s++) {
		const char *end = s;

		while (identifier(*end))
			end++;
		if (*end == '(' && s > code && (s[-1] == 'e' || s[-1] == 'E'))
			return true;
	}
	return false;
}

/* How sure a line of code is to be a call of op: 0 not at all, 3 by its name. */
static int tells_of(const char *code, const char *op)
{
	const char *dot = strrchr(op, '.');
	const char *name = dot ? dot + 1 : op;
	size_t len = strlen(name);

	if (strcmp(name, "__getitem__") == 0)
		return strcmp(code, name) == 0 || calls(code, "index", 5) ? 3 : indexes(code, false);
	if (strcmp(name, "__setitem__") == 0 && indexes(code, true))
		return 1;
	for (size_t i = 0; i < COUNT(aliases); i++)
		if (strcmp(aliases[i].function, name) == 0 &&
		    calls(code, aliases[i].name, strlen(aliases[i].name)))
			return 3;
	if (len > 1 && name[len - 1] == '_' && name[0] != '_')
		len--;
	char stem[64];

	if (len >= sizeof(stem))
		return 0;
	memcpy(stem, name, len);
	stem[len] = '\0';
	if (calls(code, stem, len))
		return 3;
	return strcmp(stem, "embedding") == 0 && calls_embedding(code) ? 2 : 0;
}

const char *catalog_refine_op(const struct explanation *e, const char *code)
{
	if (!e->op || !code)
		return NULL;
	int best = tells_of(code, e->op);
	const char *found = best ? e->op : NULL;

	for (const char *const *op = e->alternatives; op && *op; op++) {
		int sure = tells_of(code, *op);

		if (sure > best) {
			best = sure;
			found = *op;
		}
	}
	return found;
}

const char *catalog_cause_for_op(const char *cause, const char *op)
{
	bool embedding = op && strstr(op, "embedding") != NULL;

	if (op && (strcmp(cause, "index_range") == 0 || strcmp(cause, "embedding_range") == 0))
		return embedding ? "embedding_range" : "index_range";
	return cause;
}

const struct cause *catalog_cause(const char *id)
{
	for (size_t i = 0; i < cause_rows_count; i++)
		if (strcmp(cause_rows[i].id, id) == 0)
			return &cause_rows[i];
	return NULL;
}
