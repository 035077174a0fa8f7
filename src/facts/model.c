#include "facts/model.h"

#include <stdlib.h>
#include <string.h>

/* Where the operand of a hash is in the list: open addressing, a power of two of slots, 0 for an empty one. */
struct operand_index {
	size_t slots, used;
	size_t *at; /* place in the list, plus one */
};

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
	list_done(&r->operands, &operand_record);
	if (r->operand_index)
		free(r->operand_index->at);
	free(r->operand_index);
}

void model_done(struct model *m)
{
	for (size_t i = 0; i < m->nruns; i++)
		run_facts_done(&m->runs[i]);
	free(m->runs);
	list_done(&m->steps, &step_result_record);
	list_done(&m->notes, &note_record);
	list_done(&m->excerpts, &excerpt_record);
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

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_operand(const struct operand *a, const struct operand *b)
{
	return a->place.line == b->place.line && same_text(a->op, b->op) && same_text(a->tensor.role, b->tensor.role) &&
	       same_text(a->tensor.name, b->tensor.name) && same_text(a->place.file, b->place.file);
}

/* FNV-1a over what same_operand compares. */
static size_t hash_operand(const struct operand *o)
{
	const char *const texts[] = {o->op, o->tensor.role, o->tensor.name, o->place.file};
	uint64_t h = 14695981039346656037u ^ (uint64_t)o->place.line;

	for (size_t i = 0; i < COUNT(texts); i++) {
		for (const char *p = texts[i] ? texts[i] : ""; *p; p++)
			h = (h ^ (unsigned char)*p) * 1099511628211u;
		h = (h ^ 0xff) * 1099511628211u;
	}
	return (size_t)(h ^ h >> 32);
}

/* The slot of that operand: the one it is in, or the empty one that it would take. */
static size_t *operand_slot(const struct run_facts *r, const struct operand *o)
{
	const struct operand_index *x = r->operand_index;
	size_t i = hash_operand(o) & (x->slots - 1);

	while (x->at[i] && !same_operand(LIST_AT(struct operand, r->operands, x->at[i] - 1), o))
		i = (i + 1) & (x->slots - 1);
	return &x->at[i];
}

static void grow_index(struct run_facts *r)
{
	struct operand_index *x = r->operand_index;

	if (x == NULL)
		x = r->operand_index = xcalloc(1, sizeof *x);
	if (x->used * 2 < x->slots)
		return;
	x->slots = x->slots ? 2 * x->slots : 64;
	free(x->at);
	x->at = xcalloc(x->slots, sizeof *x->at);
	for (size_t i = 0; i < r->operands.n; i++)
		*operand_slot(r, LIST_AT(struct operand, r->operands, i)) = i + 1;
}

static void fold_operand(struct run_facts *r, const struct operand *o)
{
	grow_index(r);
	size_t *slot = operand_slot(r, o);

	if (*slot) {
		struct operand *old = LIST_AT(struct operand, r->operands, *slot - 1);

		/* A good batch after a bad one does not take the evidence away. */
		if (old->bad && !o->bad)
			return;
		replace(&operand_record, old, o);
	} else if (r->operands.n < RECORD_MAX_ITEMS) {
		keep(&r->operands, &operand_record, o);
		*slot = r->operands.n;
		r->operand_index->used++;
	}
}

/* What a finding tells of its operand. Borrows from f. */
static void fold_found_operand(struct run_facts *r, const struct finding *f)
{
	struct operand o;

	record_init(&operand_record, &o);
	o.pid = f->pid;
	o.op = f->op;
	o.tensor = f->tensor;
	o.low = f->low;
	o.high = f->high;
	o.bad = true;
	o.bad_count = f->bad_count;
	o.place = f->place;
	o.module = f->module;
	fold_operand(r, &o);
}

static void fold_excerpt(struct model *m, const struct excerpt *x)
{
	for (size_t i = 0; i < m->excerpts.n; i++) {
		struct excerpt *old = LIST_AT(struct excerpt, m->excerpts, i);

		if (same_text(old->file, x->file) && old->first == x->first) {
			replace(&excerpt_record, old, x);
			return;
		}
	}
	keep(&m->excerpts, &excerpt_record, x);
}

static void fold_progress(struct model *m, const struct event *e)
{
	m->progress = e->as.progress;
	m->progress_at = e->time;
}

/* Each start of a step begins its progress anew. */
static void time_step(struct model *m, const struct event *e)
{
	if (!step_is(&e->as.step, "running"))
		return;
	m->step_started = e->time;
	m->progress_at = 0;
	m->progress = (struct progress){INT_UNKNOWN, INT_UNKNOWN};
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
	m->latest = e->time;
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
		fold_found_operand(r, &e->as.finding);
		break;
	case EVENT_RAISED:
		keep(&r->raised, &raised_record, &e->as.raised);
		break;
	case EVENT_CHECKED:
		fold_checked(r, &e->as.checked);
		break;
	case EVENT_OPERAND:
		fold_operand(r, &e->as.operand);
		break;
	case EVENT_SCAN:
		keep(&r->scans, &scan_record, &e->as.scan);
		break;
	case EVENT_STEP:
		fold_step(m, &e->as.step);
		time_step(m, e);
		break;
	case EVENT_EXCERPT:
		fold_excerpt(m, &e->as.excerpt);
		break;
	case EVENT_PROGRESS:
		fold_progress(m, e);
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

const char *model_line(const struct model *m, const char *file, int64_t line)
{
	for (size_t i = m->excerpts.n; i > 0; i--) {
		const struct excerpt *x = LIST_AT(struct excerpt, m->excerpts, i - 1);

		if (same_text(x->file, file) && x->first > 0 && line >= x->first && line - x->first < (int64_t)x->lines.n)
			return x->lines.v[line - x->first];
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
