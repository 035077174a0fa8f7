/*
 * catalog: what is known beforehand about assertions and error texts.
 *
 * A pure look-up: a line of a log in, an explanation out. The knowledge is rows of the tables in data/,
 * which the build turns into C; adding an assertion, a text or a cause is one row there. Line numbers are
 * never used, since they change with every release: file, kernel and condition tell the place.
 */
#ifndef CUWHY_CATALOG_H
#define CUWHY_CATALOG_H

#include "facts/facts.h"

/* How an assertion was recognised, from the surest to the least. */
enum catalog_grade {
	CATALOG_SITE,      /* file, kernel and condition, as far as they were printed */
	CATALOG_FILE,      /* file and condition, in another kernel of the file */
	CATALOG_KERNEL,    /* kernel and condition, in another file */
	CATALOG_CONDITION, /* only what the condition says by itself */
	CATALOG_NAME,      /* only the kernel's name: the condition is a new one */
	CATALOG_NOTHING,
};

/*
 * All strings are constants or NULL when not known; those marked (words) are English texts marked
 * for translation: pass them to gettext.
 */
struct explanation {
	enum catalog_grade grade; /* of an assertion */
	const char *kind;         /* fault.kind of the report */
	const char *cause;        /* never NULL: "unknown" when nothing is known */
	const char *confidence;   /* "likely", "possible"; NULL when the cause is unknown */
	const char *op;           /* the Python function, torch.nn.functional.cross_entropy */
	const char *const *alternatives; /* other functions that end in the same assertion, then NULL; or NULL */
	const char *argument;     /* the function's name of the operand at fault: target, index, input */
	const char *range;        /* (words) what the operand must keep, for experts */
	const char *condition;    /* (words) the condition in plain words */
	const char *kernel;       /* (words) what the kernel does */
	const char *words;        /* (words) what an error text means */
	const char *fix;          /* (words) when there is better advice than the cause's own */
	const char *steps;        /* ids of the checklist steps that can prove it, between blanks */
	struct value bad;         /* the offending value, when the text holds it */
	struct value low, high;   /* the range it must keep, inclusive, as far as the text pins it down */
	bool follow_on;           /* beside another fault this one is its consequence */
};

/* Always fills out; true when more than nothing is known. Strings of a may be NULL. */
bool catalog_explain_assertion(const struct assertion *a, struct explanation *out);

/* The same for the type (may be NULL) and first line of an error. Follow-ons are explained too. */
bool catalog_explain_failure(const char *type, const char *text, struct explanation *out);

/*
 * Which of an explanation's functions a traceback frame tells of: code is its line of source or its
 * function's name. NULL when it tells of none. The cause may follow: see catalog_cause_for_op.
 */
const char *catalog_refine_op(const struct explanation *e, const char *code);

/* A bad index into an embedding is embedding_range and into anything else index_range; other causes stay. */
const char *catalog_cause_for_op(const char *cause, const char *op);

/*
 * What is said about a cause. In fix stand {name} {value} {low} {high} {op} {shape} {expect}, for the
 * verdict to fill in; fix_plain is for when one of those used is not known.
 */
struct cause {
	const char *id;
	const char *title, *meaning, *fix, *fix_plain; /* (words) */
	const char *steps; /* ids between blanks, the most telling first */
};

/* NULL when there is no such cause. */
const struct cause *catalog_cause(const char *id);

#endif
