/*
 * site: which row of assert-sites.tsv an assertion line belongs to.
 *
 * Cells hold several names, `*`, and <placeholders>; logs hold Windows paths, HIP files, full
 * signatures, conditions with and without the text behind `&&`. All of that is met here.
 */
#ifndef CUWHY_SITE_H
#define CUWHY_SITE_H

#include "diagnose/catalog_rows.h"

enum { SITE_CONDITION_MAX = 1024, SITE_PATH_MAX = 512 };

/* What an assertion line says, in the form that rows are compared with. */
struct sighting {
	char path[SITE_PATH_MAX]; /* with slashes, without line */
	const char *base;
	const char *kernel, *signature;  /* borrowed from the assertion; NULL when not printed */
	char full[SITE_CONDITION_MAX];   /* squeezed */
	char bare[SITE_CONDITION_MAX];   /* without a text at its end */
	bool windows;
};

void site_sight(const struct assertion *a, struct sighting *s);

/*
 * Without white space, and without the underscore at the end of names that twins of a kernel for
 * other devices give their members (n_classes_).
 */
void site_squeeze(const char *text, char out[static SITE_CONDITION_MAX]);

struct site_match {
	const struct site_row *row; /* NULL when none is like it */
	enum catalog_grade grade;
	int rank; /* among rows of one grade */
};

/* The best row whose own condition was printed or, with wild, the best that takes any condition. */
struct site_match site_find(const struct sighting *s, bool wild);

#endif
