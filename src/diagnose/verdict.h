/*
 * verdict: what is wrong, how sure that is, and what to do, from the model alone.
 *
 * `certain` is kept for bad values that were seen; `likely` for what the log pins down by itself;
 * `possible` for a pattern. What is not known stays unknown, and is null in the report.
 */
#ifndef CUWHY_VERDICT_H
#define CUWHY_VERDICT_H

#include "diagnose/fault.h"
#include "facts/model.h"

struct verdict {
	bool known; /* false: the program ended well and nothing was found */
	const char *cause, *confidence, *title; /* constants */
	char *summary; /* one sentence a beginner understands */
	char *why, *fix;
	char *op;
	struct tensor tensor;
	struct value low, high;
	struct values bad_values;
	int64_t bad_count;
	struct list bad_elements; /* struct element */
	struct place location;          /* where it is launched from */
	struct place reported_location; /* where Python says, when that is another line */
	char *module;
	struct scan data;
	char *kernel; /* the faulting kernel in plain words, from the catalogue */
	char *candidates; /* which elements the printed threads point to, in words */
	struct strs next; /* of a log: ids of the steps that would tell more */
};

void verdict_of(const struct model *m, struct verdict *ret);
void verdict_done(struct verdict *v);

/* The finding that a verdict stands on: one that has seen bad values and fits the log, else any. NULL: none. */
const struct finding *verdict_finding(const struct model *m);

/* The sentences, from all other fields; words.c. */
void verdict_words(struct verdict *v, const struct model *m, const struct fault *f, const struct finding *seen);

#endif
