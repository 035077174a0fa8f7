#include "cmd/cmd.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/show.h"
#include "diagnose/steps.h"

enum { ALL = VERB_RUN | VERB_EXPLAIN | VERB_REPORT | VERB_DEMO, RUNS = VERB_RUN | VERB_DEMO };

static bool set_format(struct options *o, const char *value, struct error *e);
static bool set_color(struct options *o, const char *value, struct error *e);
static bool set_steps(struct options *o, const char *value, struct error *e);
static bool set_skip(struct options *o, const char *value, struct error *e);
static bool set_limit(struct options *o, const char *value, struct error *e);
static bool set_batch(struct options *o, const char *value, struct error *e);
static bool set_lang(struct options *o, const char *value, struct error *e);

/* An option sets a flag, a text, or calls `set`. */
static const struct {
	const char *name;
	char letter;
	const char *argument;
	int verbs;
	const char *help;
	size_t flag, text; /* offset in struct options, SIZE_MAX: none */
	bool (*set)(struct options *o, const char *value, struct error *e);
} table[] = {
#define NONE SIZE_MAX
#define AT(member_) offsetof(struct options, member_)
	{"batch", 'b', NULL, ALL, "no screen: run every step that applies and print the report", NONE, NONE, set_batch},
	{"json", 'j', "FILE", ALL, "also write the report as JSON (-: stdout, alone)", NONE, AT(json), NULL},
	{"format", 'f', "FORMAT", VERB_EXPLAIN | VERB_REPORT, "text, markdown, json or sarif", NONE, NONE, set_format},
	{"session", 's', "FILE", RUNS, "where the session goes", NONE, AT(session), NULL},
	{"steps", 0, "LIST", RUNS, "which checklist steps run, by id, comma separated", NONE, NONE, set_steps},
	{"skip", 0, "LIST", RUNS, "which steps do not run", NONE, NONE, set_skip},
	{"limit", 0, "STEP=SECONDS", RUNS, "a step's own time limit", NONE, NONE, set_limit},
	{"lang", 0, "LANG", ALL, "language of the texts (so far: en)", NONE, NONE, set_lang},
	{"color", 0, "WHEN", ALL, "auto, always or never", NONE, NONE, set_color},
	{"redact", 0, NULL, VERB_REPORT, "leave out user and host names and paths above the project", AT(redact), NONE, NULL},
	{"verbose", 'v', NULL, ALL, "say what is done, also when nothing is found", AT(verbose), NONE, NULL},
	{"version", 'V', NULL, ALL, "print the version", AT(version), NONE, NULL},
	{"help", 'h', NULL, ALL, "print this help", AT(help), NONE, NULL},
};

static bool one_of(const char *value, const char *const *words, const char *option, struct error *e)
{
	struct buf list = {0};

	for (size_t i = 0; words[i]; i++) {
		if (strcmp(value, words[i]) == 0) {
			buf_done(&list);
			return true;
		}
		buf_fmt(&list, "%s%s", i ? ", " : "", words[i]);
	}
	error_set(e, "--%s %s: must be one of %s", option, value, list.data);
	buf_done(&list);
	return false;
}

static bool set_format(struct options *o, const char *value, struct error *e)
{
	static const char *const words[] = {"text", "markdown", "json", "sarif", NULL};

	o->format = value;
	return one_of(value, words, "format", e);
}

static bool set_color(struct options *o, const char *value, struct error *e)
{
	static const char *const words[] = {"auto", "always", "never", NULL};

	o->color = value;
	return one_of(value, words, "color", e);
}

static bool set_lang(struct options *o, const char *value, struct error *e)
{
	static const char *const words[] = {"en", "fr", "zh_CN", NULL};

	o->lang = value;
	if (!one_of(value, words, "lang", e))
		return false;
	if (strcmp(value, "en") != 0)
		complain("--lang %s: there are no translations yet; the texts are English", value);
	return true;
}

static bool set_batch(struct options *o, const char *value, struct error *e)
{
	(void)o, (void)value, (void)e; /* always so until there is a screen */
	return true;
}

static bool add_steps(struct strs *ids, const char *value, const char *option, struct error *e)
{
	char *list = xstrdup(value), *rest = list;
	bool ok = true;

	for (char *id; ok && (id = strsep(&rest, ","));) {
		if (*id && !step_find(id))
			ok = error_set(e, "--%s %s: no step is called so; `cuwhy run --help` lists them", option, id);
		else if (*id)
			strs_add(ids, id);
	}
	free(list);
	return ok;
}

static bool set_steps(struct options *o, const char *value, struct error *e)
{
	return add_steps(&o->steps, value, "steps", e);
}

static bool set_skip(struct options *o, const char *value, struct error *e)
{
	return add_steps(&o->skip, value, "skip", e);
}

static bool set_limit(struct options *o, const char *value, struct error *e)
{
	const char *equals = strchr(value, '=');
	char *end = NULL;
	double seconds = equals ? strtod(equals + 1, &end) : -1;
	char *id = xstrndup(value, equals ? (size_t)(equals - value) : 0);

	if (!equals || end == equals + 1 || *end || !(seconds > 0) || seconds > 1e7 || !step_find(id)) {
		free(id);
		return error_set(e, "--limit %s: must be STEP=SECONDS, for example cpu_rerun=60", value);
	}
	o->limits = xrealloc(o->limits, (o->nlimits + 1) * sizeof *o->limits);
	o->limits[o->nlimits++] = (struct limit){id, seconds};
	return true;
}

static bool apply(struct options *o, size_t row, const char *value, struct error *e)
{
	if (table[row].set)
		return table[row].set(o, value, e);
	if (table[row].flag != NONE)
		*(bool *)((char *)o + table[row].flag) = true;
	else
		*(const char **)((char *)o + table[row].text) = value;
	return true;
}

bool options_parse(struct options *o, const struct cmd *c, int argc, char **argv, struct error *e)
{
	struct option longs[COUNT(table) + 1] = {{0}};
	/* The program's own options start at COMMAND (+); elsewhere options may follow the file. */
	char letters[2 * COUNT(table) + 3] = "", *at = letters;
	int n = 0, got;

	*o = (struct options){.format = "text", .color = "auto"};
	if (c->verb == VERB_RUN)
		*at++ = '+';
	*at++ = ':';
	for (size_t i = 0; i < COUNT(table); i++) {
		if (!(table[i].verbs & (int)c->verb))
			continue;
		longs[n++] = (struct option){table[i].name, table[i].argument != NULL, NULL, 256 + (int)i};
		if (table[i].letter) {
			*at++ = table[i].letter;
			if (table[i].argument)
				*at++ = ':';
		}
	}
	*at = '\0';
	opterr = 0;
	optind = 0;
	while ((got = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		size_t row = 0;
		const char *word = argv[optind - 1];

		if (got == '?')
			return error_set(e, "%s: unknown option for `%s`; see `cuwhy %s --help`", word, c->name, c->name);
		if (got == ':')
			return error_set(e, "%s: needs an argument; see `cuwhy %s --help`", word, c->name);
		while (got < 256 ? table[row].letter != got : row != (size_t)got - 256)
			row++;
		if (!apply(o, row, optarg, e))
			return false;
	}
	o->args = argv + optind;
	o->nargs = argc - optind;
	return true;
}

void options_done(struct options *o)
{
	strs_done(&o->steps);
	strs_done(&o->skip);
	for (size_t i = 0; i < o->nlimits; i++)
		free(o->limits[i].step);
	free(o->limits);
}

void options_help(const struct cmd *c)
{
	printf("Usage: cuwhy %s\n\n%s\n\nOptions:\n", c->usage, c->summary);
	for (size_t i = 0; i < COUNT(table); i++) {
		char *left;

		if (!(table[i].verbs & (int)c->verb))
			continue;
		left = xasprintf("%c%c%s--%s%s%s", table[i].letter ? '-' : ' ', table[i].letter ? table[i].letter : ' ',
				 table[i].letter ? ", " : "  ", table[i].name, table[i].argument ? " " : "",
				 table[i].argument ? table[i].argument : "");
		printf("  %-25s %s\n", left, table[i].help);
		free(left);
	}
	if (c->verb & RUNS) {
		puts("\nChecklist steps:");
		for (size_t i = 0; i < step_count; i++)
			printf("  %-17s %s\n", step_table[i].id, step_table[i].question);
	}
	if (c->more)
		printf("\n%s", c->more);
}

void complain(const char *fmt, ...)
{
	char text[1024];
	struct buf b = {0};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	buf_str(&b, "cuwhy: ");
	show_text(&b, text);
	buf_chr(&b, '\n');
	fputs(b.data, stderr);
	buf_done(&b);
}
