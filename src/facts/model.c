#include "facts/model.h"

#include <stdlib.h>
#include <string.h>

void model_init(struct model *m)
{
	memset(m, 0, sizeof *m);
	record_init(&machine_record, &m->machine);
}

static void run_facts_done(struct run_facts *r)
{
	record_done(&run_record, &r->run);
	record_done(&ended_record, &r->ended);
	list_done(&r->processes, &process_record);
	list_done(&r->assertions, &assertion_record);
	list_done(&r->failures, &failure_record);
	list_done(&r->tracebacks, &traceback_record);
	list_done(&r->findings, &finding_record);
	list_done(&r->raised, &raised_record);
	list_done(&r->checked, &checked_record);
	list_done(&r->scans, &scan_record);
}

void model_done(struct model *m)
{
	for (size_t i = 0; i < m->nruns; i++)
		run_facts_done(&m->runs[i]);
	free(m->runs);
	list_done(&m->steps, &step_result_record);
	list_done(&m->notes, &note_record);
	record_done(&machine_record, &m->machine);
	model_init(m);
}

/* Runs come in order; an event of a run that was never announced (a log, a damaged session) makes it. */
static struct run_facts *run_at(struct model *m, int run)
{
	enum { MAX_RUNS = 64 };

	if (run < 0 || run >= MAX_RUNS)
		run = 0;
	while (m->nruns <= (size_t)run) {
		m->runs = xrealloc(m->runs, (m->nruns + 1) * sizeof *m->runs);
		struct run_facts *r = &m->runs[m->nruns++];

		memset(r, 0, sizeof *r);
		record_init(&run_record, &r->run);
		record_init(&ended_record, &r->ended);
		r->rank = INT_UNKNOWN;
	}
	return &m->runs[run];
}

static void keep(struct list *l, const struct record *r, const void *fact)
{
	if (l->n < RECORD_MAX_ITEMS)
		record_copy(r, list_add(l, r), fact);
}

static void replace(const struct record *r, void *old, const void *fact)
{
	record_done(r, old);
	record_copy(r, old, fact);
}

static void fold_assertion(struct run_facts *r, const struct assertion *a)
{
	for (size_t i = 0; i < r->assertions.n; i++) {
		struct assertion *old = LIST_AT(struct assertion, r->assertions, i);

		if (old->id == a->id) {
			replace(&assertion_record, old, a);
			return;
		}
	}
	keep(&r->assertions, &assertion_record, a);
}

static void fold_checked(struct run_facts *r, const struct checked *c)
{
	for (size_t i = 0; i < r->checked.n; i++) {
		struct checked *old = LIST_AT(struct checked, r->checked, i);

		if (old->pid == c->pid && old->op && c->op && strcmp(old->op, c->op) == 0) {
			replace(&checked_record, old, c);
			return;
		}
	}
	keep(&r->checked, &checked_record, c);
}

static void fold_step(struct model *m, const struct step_result *s)
{
	for (size_t i = 0; s->id && i < m->steps.n; i++) {
		struct step_result *old = LIST_AT(struct step_result, m->steps, i);

		if (old->id && strcmp(old->id, s->id) == 0) {
			replace(&step_result_record, old, s);
			return;
		}
	}
	keep(&m->steps, &step_result_record, s);
}

void model_fold(struct model *m, const struct event *e)
{
	struct run_facts *r = run_at(m, e->run);

	m->last_event = e->id;
	if (m->started == 0)
		m->started = e->time;
	switch (e->kind) {
	case EVENT_RUN:
		replace(&run_record, &r->run, &e->as.run);
		break;
	case EVENT_ENDED:
		replace(&ended_record, &r->ended, &e->as.ended);
		r->has_ended = true;
		break;
	case EVENT_PROCESS:
		keep(&r->processes, &process_record, &e->as.process);
		break;
	case EVENT_CUDA_ABSENT:
		r->cuda_absent = true;
		break;
	case EVENT_ASSERTION:
		fold_assertion(r, &e->as.assertion);
		break;
	case EVENT_FAILURE:
		keep(&r->failures, &failure_record, &e->as.failure);
		break;
	case EVENT_TRACEBACK:
		keep(&r->tracebacks, &traceback_record, &e->as.traceback);
		break;
	case EVENT_RANK:
		if (r->rank == INT_UNKNOWN)
			r->rank = e->as.rank.rank;
		break;
	case EVENT_FINDING:
		keep(&r->findings, &finding_record, &e->as.finding);
		break;
	case EVENT_RAISED:
		keep(&r->raised, &raised_record, &e->as.raised);
		break;
	case EVENT_CHECKED:
		fold_checked(r, &e->as.checked);
		break;
	case EVENT_SCAN:
		keep(&r->scans, &scan_record, &e->as.scan);
		break;
	case EVENT_STEP:
		fold_step(m, &e->as.step);
		break;
	case EVENT_MACHINE:
		replace(&machine_record, &m->machine, &e->as.machine);
		m->has_machine = true;
		break;
	case EVENT_NOTE:
		keep(&m->notes, &note_record, &e->as.note);
		break;
	case EVENT_OUTPUT:
	case EVENT_HELD:
	case EVENT_PROGRESS:
	case EVENT_KINDS:
		break;
	}
}

const struct run_facts *model_run(const struct model *m, const char *name)
{
	for (size_t i = m->nruns; i > 0; i--) {
		if (m->runs[i - 1].run.name && strcmp(m->runs[i - 1].run.name, name) == 0)
			return &m->runs[i - 1];
	}
	return NULL;
}

bool step_is(const struct step_result *s, const char *status)
{
	return s && s->status && strcmp(s->status, status) == 0;
}

const struct step_result *model_step(const struct model *m, const char *id)
{
	for (size_t i = 0; i < m->steps.n; i++) {
		const struct step_result *s = LIST_AT(struct step_result, m->steps, i);

		if (s->id && strcmp(s->id, id) == 0)
			return s;
	}
	return NULL;
}
