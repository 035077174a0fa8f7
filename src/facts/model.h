/*
 * model: the present state, as a fold of events. No I/O, no clock, no screen.
 *
 * Live and replay feed the same events and must arrive at the same model; steps, verdict and reports
 * read nothing else.
 */
#ifndef CUWHY_MODEL_H
#define CUWHY_MODEL_H

#include "facts/event.h"

/* All that is known about one run of the inferior. Lists hold the records of the same name. */
struct run_facts {
	struct run run;
	struct ended ended;
	bool has_ended;
	struct list processes;
	struct list assertions; /* one an id, with its latest counts */
	struct list failures;
	struct list tracebacks;
	struct list findings;
	struct list raised;
	struct list checked; /* one a process and operation, the latest */
	struct list scans;
	struct list operands; /* one an operation, role, name and line: the latest, or the latest that was bad */
	struct operand_index *operand_index;
	int64_t rank;        /* of a launcher's summary */
	bool cuda_absent;
};

struct model {
	struct run_facts *runs;
	size_t nruns;
	struct list steps; /* struct step_result, in the order of their first event; the latest state */
	struct list notes;
	struct machine machine;
	bool has_machine;
	struct list excerpts;
	int64_t last_event;     /* id */
	double started, latest; /* times of the first and the last event */
	double step_started;    /* of the step that is running */
	struct progress progress; /* of the step that is running; total unknown before it is told */
	double progress_at;     /* time of it; 0: none told */
};

void model_init(struct model *m);
void model_done(struct model *m);
void model_fold(struct model *m, const struct event *e); /* e is borrowed, what is kept is copied */

/* A line of a source file from the excerpts, NULL when it is not among them. Borrowed. */
const char *model_line(const struct model *m, const char *file, int64_t line);
/* The run of that name, NULL when it was not started; the last one when there were several. */
const struct run_facts *model_run(const struct model *m, const char *name);
/* The state of a step, NULL when nothing is known of it. */
const struct step_result *model_step(const struct model *m, const char *id);
/* Has the step that status; false when nothing is known of it (NULL). */
bool step_is(const struct step_result *s, const char *status);

/* Typed access to a list: LIST_AT(struct finding, run->findings, 0). */
#define LIST_AT(type, list, i) ((type *)(list).v + (i))

#endif
