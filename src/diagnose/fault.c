#include "diagnose/fault.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Kinds that a kernel raises while Python has gone on. */
static bool comes_late(const char *kind)
{
	static const char *const late[] = {"device_assert", "illegal_address", "misaligned_address",
		"launch_failure", "library_error"};

	for (size_t i = 0; i < COUNT(late); i++) {
		if (strcmp(late[i], kind) == 0)
			return true;
	}
	return false;
}

/*
 * Which of two explained errors tells more. A GPU error beats a Python one, since Python's may come of it;
 * a consequence loses against anything; among Python errors a known cause wins, then the later line:
 * chained tracebacks end with the one that reached the top.
 */
static int weight(const struct explanation *e)
{
	if (e->follow_on)
		return 0;
	if (strcmp(e->kind, "python_error") != 0)
		return 3;
	return strcmp(e->cause, "other") == 0 || strcmp(e->cause, "unknown") == 0 ? 1 : 2;
}

static void take(struct fault *ret, int *best, const char *type, const char *text, int64_t code)
{
	struct explanation e;

	if (text == NULL || (type && strcmp(type, "KeyboardInterrupt") == 0))
		return;
	catalog_explain_failure(type, text, &e);
	if (e.kind == NULL)
		e.kind = "python_error";
	/* An error that Python raised is known as far as its text goes; only a GPU leaves the cause open. */
	if (strcmp(e.kind, "python_error") == 0 && strcmp(e.cause, "unknown") == 0)
		e.cause = "other";
	int w = weight(&e);

	if (w < *best || (w == *best && w != 1))
		return;
	*best = w;
	ret->kind = e.kind;
	ret->log = e;
	ret->error_code = code;
	free(ret->message);
	ret->message = type ? xasprintf("%s: %s", type, text) : xstrdup(text);
}

static void rank_of(const struct run_facts *r, struct fault *ret)
{
	if (ret->assertion)
		ret->rank = ret->assertion->rank;
	for (size_t i = 0; ret->rank == INT_UNKNOWN && i < r->failures.n; i++)
		ret->rank = LIST_AT(struct failure, r->failures, i)->rank;
	for (size_t i = 0; ret->rank == INT_UNKNOWN && i < r->tracebacks.n; i++)
		ret->rank = LIST_AT(struct traceback, r->tracebacks, i)->rank;
	if (ret->rank == INT_UNKNOWN)
		ret->rank = r->rank;
	for (size_t i = 0; ret->rank == INT_UNKNOWN && i < r->raised.n; i++) {
		for (size_t p = 0; p < r->processes.n; p++) {
			const struct process *at = LIST_AT(struct process, r->processes, p);

			if (at->pid == LIST_AT(struct raised, r->raised, i)->pid)
				ret->rank = at->rank;
		}
	}
}

/* Signals by which somebody stops a program are no fault of its own. */
static bool is_fault(int64_t signal)
{
	return signal != INT_UNKNOWN && signal > 0 && signal != SIGINT && signal != SIGTERM && signal != SIGHUP &&
	       signal != SIGPIPE && signal != SIGQUIT;
}

void fault_of(const struct model *m, struct fault *ret)
{
	fault_of_run(m->nruns ? &m->runs[0] : NULL, ret);
}

void fault_of_run(const struct run_facts *r, struct fault *ret)
{
	int best = -1;

	*ret = (struct fault){.kind = "none", .error_code = INT_UNKNOWN, .rank = INT_UNKNOWN,
			      .log.cause = "unknown"};
	if (r == NULL)
		return;
	for (size_t i = 0; i < r->failures.n; i++) {
		const struct failure *f = LIST_AT(struct failure, r->failures, i);

		take(ret, &best, f->type, f->text, f->code);
	}
	/* What the agent caught is what was printed, unless the program printed it in its own way. */
	for (size_t i = 0; best < 0 && i < r->raised.n; i++) {
		const struct raised *e = LIST_AT(struct raised, r->raised, i);

		take(ret, &best, e->type, e->text, INT_UNKNOWN);
	}
	if (r->assertions.n) {
		ret->assertion = LIST_AT(struct assertion, r->assertions, 0);
		ret->kind = "device_assert";
		catalog_explain_assertion(ret->assertion, &ret->log);
		if (ret->message == NULL)
			ret->message = xasprintf("Assertion `%s` failed",
						 ret->assertion->condition ? ret->assertion->condition : "?");
	} else if (best < 0 && r->has_ended && is_fault(r->ended.signal)) {
		ret->kind = "signal";
		ret->message = xasprintf("ended by signal %d (%s)", (int)r->ended.signal, strsignal((int)r->ended.signal));
	}
	ret->late = comes_late(ret->kind);
	rank_of(r, ret);
}

void fault_done(struct fault *f)
{
	free(f->message);
	f->message = NULL;
}

/* Frames of Python itself and of what was installed are not the user's. */
static bool is_library(const char *file)
{
	static const char *const marks[] = {"site-packages", "dist-packages", "/lib/python", "\\lib\\runpy.py",
		"/torchinductor_", "<frozen ", "<string>", "<__array_function__", "/pyodide/"};

	for (size_t i = 0; i < COUNT(marks); i++) {
		if (strstr(file, marks[i]))
			return true;
	}
	return false;
}

static const struct place *users_frame(const struct traceback *t)
{
	for (size_t i = t->frames.n; i > 0; i--) {
		const struct place *p = LIST_AT(struct place, t->frames, i - 1);

		if (p->file && !is_library(p->file))
			return p;
	}
	return NULL;
}

static const char *passes_through(const struct traceback *t, const struct explanation *e)
{
	const char *op = NULL;

	for (size_t i = t->frames.n; i > 0 && op == NULL; i--) {
		const struct place *p = LIST_AT(struct place, t->frames, i - 1);

		op = p->code ? catalog_refine_op(e, p->code) : NULL;
		if (op == NULL && p->function)
			op = catalog_refine_op(e, p->function);
	}
	return op;
}

const struct place *fault_frame(const struct run_facts *r, const struct explanation *through, const char **ret_op)
{
	/* Of several tracebacks the first with a line of the user's: later ones come of it. */
	for (size_t i = 0; r && i < r->tracebacks.n; i++) {
		const struct traceback *t = LIST_AT(struct traceback, r->tracebacks, i);
		const struct place *p = users_frame(t);
		const char *op = through ? passes_through(t, through) : NULL;

		if (p == NULL || (through && op == NULL))
			continue;
		if (ret_op)
			*ret_op = op;
		return p;
	}
	return NULL;
}
