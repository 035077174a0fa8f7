/*
 * catalog_rows: the rows of the tables in data/, as gen-catalog.awk writes them.
 *
 * Only catalog.c reads them. An empty cell is NULL. Order is priority in all but assert-sites.tsv.
 */
#ifndef CUWHY_CATALOG_ROWS_H
#define CUWHY_CATALOG_ROWS_H

#include "diagnose/catalog.h"

/* conditions.tsv: what a condition means by itself, whatever kernel checks it. */
struct condition_row {
	const char *condition; /* a pattern; white space does not count */
	const char *cause, *op, *argument;
	const char *low, *high; /* numbers, where they never change */
	const char *words;
};

/* kernels.tsv: what a kernel does, in words. */
struct kernel_row {
	const char *file, *kernel, *words; /* file: pattern of the base name; kernel: pattern */
};

/* assert-sites.tsv: every known assertion in device code. */
struct site_row {
	const char *versions;
	const char *file;   /* a path, several, or a <placeholder> */
	const char *kernel; /* names between blanks; `*` for any */
	enum { SITE_EXACT, SITE_PATTERN, SITE_ANY, SITE_EMPTY } compared;
	const char *condition;
	const char *range;
	const char *cause;
	const char *const *ops; /* the commonest, its alternatives, then NULL */
	const char *argument;
	int seen; /* in how many public reports; breaks ties */
};

/* error-texts.tsv: the lines in which errors are told. */
struct text_row {
	const char *pattern; /* found anywhere in the text */
	const char *type;    /* pattern of the exception's last name */
	const char *kind, *cause, *op, *argument, *confidence;
	bool follow_on;
	const char *words, *fix;
};

extern const struct cause cause_rows[];
extern const struct condition_row condition_rows[];
extern const struct kernel_row kernel_rows[];
extern const struct site_row site_rows[];
extern const struct text_row text_rows[];
extern const size_t cause_rows_count, condition_rows_count, kernel_rows_count, site_rows_count,
	text_rows_count;

#endif
