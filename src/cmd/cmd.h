/*
 * cmd: what can be typed after `cuwhy`. One verb is one file and one const record; options are rows of
 * one table (options.c), each saying which verbs take it.
 */
#ifndef CUWHY_CMD_H
#define CUWHY_CMD_H

#include "facts/record.h"

enum { /* exit statuses of the contract */
	EXIT_DIAGNOSED = 0,
	EXIT_NOTHING = 1,
	EXIT_UNUSABLE = 2,
	EXIT_OURS = 125,
};

enum verb { VERB_RUN = 1, VERB_EXPLAIN = 2, VERB_REPORT = 4, VERB_DEMO = 8 };

struct limit {
	char *step;
	double seconds;
};

struct options {
	bool verbose, redact, help, version;
	const char *json;    /* also write the report here; "-": stdout */
	const char *format;  /* text, markdown, json, sarif */
	const char *session;
	const char *color;
	const char *lang;
	struct strs steps, skip; /* step ids; steps empty: all */
	struct limit *limits;
	size_t nlimits;
	char **args; /* what is left of argv */
	int nargs;
};

struct cmd {
	const char *name;
	enum verb verb;
	const char *usage;   /* after "cuwhy " */
	const char *summary; /* one line */
	const char *more;    /* paragraphs of --help after the options; may be NULL */
	int (*run)(struct options *o);
};

extern const struct cmd cmd_run, cmd_explain, cmd_report, cmd_demo;
extern const struct cmd *const cmds[]; /* NULL-terminated, in the order of --help */

/* False on a wrong option: e says what, where and what to do. argv[0] is passed over. */
bool options_parse(struct options *o, const struct cmd *c, int argc, char **argv, struct error *e);
void options_done(struct options *o);
void options_help(const struct cmd *c); /* on stdout */

/* Prints "cuwhy: ..." on stderr, filtered. */
void complain(const char *fmt, ...) PRINTF(1, 2);

#endif
