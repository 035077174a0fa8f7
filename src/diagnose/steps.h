/*
 * steps: the seven checklist steps as rows of one table. A row knows its question, when it has nothing to
 * add, how it is run, and how the facts answer it; it sees no screen and no file descriptor. walk.c runs
 * the rows against a live inferior.
 */
#ifndef CUWHY_STEPS_H
#define CUWHY_STEPS_H

#include "facts/model.h"

/* How a step gets its facts. */
enum step_way {
	STEP_READ,     /* they are there already */
	STEP_CPU,      /* by a rerun with every CUDA device answered with the CPU */
	STEP_BLOCKING, /* by a rerun with synchronous launches */
	STEP_SCAN,     /* by asking the held process to walk its data */
};

enum step_status { STEP_RUNNING, STEP_FOUND, STEP_CLEAN, STEP_SKIPPED, STEP_FAILED };

struct step {
	const char *id;
	const char *question; /* what it asks, for the checklist and --help */
	const char *why;      /* why the answer matters, for a beginner */
	enum step_way way;
	double limit; /* seconds, unless the user says otherwise; 0: it takes no time */
	/* Appends the reason and returns true when the step can add nothing. */
	bool (*needless)(const struct model *m, struct buf *reason);
	/* Reads the answer off the facts, after the step has run; appends it in words. */
	enum step_status (*judge)(const struct model *m, struct buf *finding);
};

extern const struct step step_table[];
extern const size_t step_count;

const struct step *step_find(const char *id); /* NULL: no such step */
const char *step_status_name(enum step_status status);

#endif
