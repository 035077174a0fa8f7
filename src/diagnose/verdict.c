#include "diagnose/verdict.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/candidates.h"

/* The last name of a function, without the underscores of in-place and dunder forms. */
static const char *tail_of(const char *op, size_t *ret_len)
{
	const char *dot = strrchr(op, '.'), *tail = dot ? dot + 1 : op;

	while (*tail == '_')
		tail++;
	*ret_len = strlen(tail);
	while (*ret_len && tail[*ret_len - 1] == '_')
		--*ret_len;
	return tail;
}

static bool same_op(const char *a, const char *b)
{
	size_t n, k;
	const char *x = tail_of(a, &n), *y = tail_of(b, &k);

	return n == k && memcmp(x, y, n) == 0;
}

/* Can this finding be what the log tells of? Without an assertion there is nothing to contradict it. */
static bool fits(const struct finding *f, const struct fault *log)
{
	const struct explanation *e = &log->log;

	if (log->assertion == NULL || e->op == NULL || f->op == NULL)
		return true;
	if (same_op(f->op, e->op) || (f->cause && strcmp(f->cause, e->cause) == 0))
		return true;
	for (size_t i = 0; e->alternatives && e->alternatives[i]; i++) {
		if (same_op(f->op, e->alternatives[i]))
			return true;
	}
	return false;
}

static const struct finding *choose(const struct model *m, const struct fault *log)
{
	const struct finding *best = NULL;
	int best_weight = 0;

	for (size_t k = 0; k < m->nruns; k++) {
		for (size_t i = 0; i < m->runs[k].findings.n; i++) {
			const struct finding *f = LIST_AT(struct finding, m->runs[k].findings, i);
			int weight = 1 + (f->seen ? 2 : 0) + (fits(f, log) ? 4 : 0);

			if (f->cause && catalog_cause(f->cause) && weight > best_weight) {
				best = f;
				best_weight = weight;
			}
		}
	}
	return best;
}

const struct finding *verdict_finding(const struct model *m)
{
	struct fault log;

	fault_of(m, &log);
	const struct finding *f = choose(m, &log);

	fault_done(&log);
	return f;
}

static void copy_list(struct list *dst, const struct list *src, const struct record *r)
{
	for (size_t i = 0; i < src->n; i++)
		record_copy(r, list_add(dst, r), (char *)src->v + i * r->size);
}

/* Paths inside the program's folder are told from there on: that is how the user calls them. */
static void shorten(struct place *p, const struct model *m)
{
	const char *cwd = m->nruns ? m->runs[0].run.cwd : NULL;
	size_t n = cwd ? strlen(cwd) : 0;

	if (p->file == NULL || n == 0)
		return;
	if (strncmp(p->file, cwd, n) == 0 && p->file[n] == '/')
		memmove(p->file, p->file + n + 1, strlen(p->file + n + 1) + 1);
	else if (starts_with(p->file, "./"))
		memmove(p->file, p->file + 2, strlen(p->file + 2) + 1);
}

static const struct scan *last_scan(const struct model *m)
{
	for (size_t k = m->nruns; k > 0; k--) {
		if (m->runs[k - 1].scans.n)
			return LIST_AT(struct scan, m->runs[k - 1].scans, m->runs[k - 1].scans.n - 1);
	}
	return NULL;
}

static void from_finding(struct verdict *v, const struct model *m, const struct fault *log,
			 const struct finding *f)
{
	const struct scan *s = last_scan(m);

	v->cause = catalog_cause(f->cause)->id;
	v->confidence = !f->seen ? "likely" : fits(f, log) ? "certain" : "likely";
	v->op = xstrdup(f->op);
	record_copy(&tensor_record, &v->tensor, &f->tensor);
	v->low = f->low;
	v->high = f->high;
	for (size_t i = 0; i < f->bad_values.n; i++)
		values_add(&v->bad_values, f->bad_values.v[i]);
	v->bad_count = f->bad_count;
	copy_list(&v->bad_elements, &f->bad_elements, &element_record);
	record_copy(&place_record, &v->location, &f->place);
	v->module = xstrdup(f->module);
	if (s) {
		record_done(&scan_record, &v->data);
		record_copy(&scan_record, &v->data, s);
	}
}

/* Did the CPU run look at every operand of that operation? */
static bool all_seen(const struct run_facts *cpu, const char *op)
{
	bool any = false;

	for (size_t i = 0; cpu && op && i < cpu->checked.n; i++) {
		const struct checked *c = LIST_AT(struct checked, cpu->checked, i);

		if (c->op == NULL || !same_op(c->op, op))
			continue;
		if (c->calls == INT_UNKNOWN || c->calls <= 0 || c->unseen != 0)
			return false;
		any = true;
	}
	return any;
}

/* Every value that went into the suspected operation was seen on the CPU, and was fine: the data is cleared. */
static bool data_cleared(const struct model *m, const struct fault *log)
{
	static const char *const by_value[] = {"label_range", "index_range", "embedding_range",
		"probability_invalid", "bce_input_range"};
	const struct run_facts *cpu = model_run(m, "cpu_rerun");
	bool about_values = false, seen = all_seen(cpu, log->log.op);

	for (size_t i = 0; i < COUNT(by_value); i++)
		about_values |= strcmp(log->log.cause, by_value[i]) == 0;
	for (size_t i = 0; log->log.alternatives && log->log.alternatives[i]; i++)
		seen |= all_seen(cpu, log->log.alternatives[i]);
	return about_values && log->assertion && seen && step_is(model_step(m, "label_check"), "clean") &&
	       step_is(model_step(m, "cpu_rerun"), "clean");
}

static void from_log(struct verdict *v, const struct model *m, const struct run_facts *r, const struct fault *log)
{
	const struct explanation *e = &log->log;
	const char *op = NULL;
	const struct place *p = fault_frame(r, e, &op);

	v->cause = op ? catalog_cause_for_op(e->cause, op) : e->cause;
	v->confidence = e->confidence ? e->confidence : "possible";
	v->op = xstrdup(op ? op : e->op);
	v->tensor.role = xstrdup(e->argument);
	v->low = e->low;
	v->high = e->high;
	if (value_known(e->bad))
		values_add(&v->bad_values, e->bad);
	/* A traceback through the very function is where it was launched; so is any that came at once. */
	if (p == NULL && !log->late)
		p = fault_frame(r, NULL, NULL);
	if (p)
		record_copy(&place_record, &v->location, p);
	if (data_cleared(m, log)) {
		v->cause = "internal";
		v->confidence = "possible";
	}
}

/* Where Python says it is, when that is another line than the launch. */
static void set_reported(struct verdict *v, const struct model *m, const struct fault *log)
{
	const struct place *p = log->late ? fault_frame(&m->runs[0], NULL, NULL) : NULL;

	if (p == NULL)
		return;
	record_copy(&place_record, &v->reported_location, p);
	shorten(&v->reported_location, m);
	const char *a = v->reported_location.file, *b = v->location.file;

	if (b && v->reported_location.line == v->location.line && (ends_with(a, b) || ends_with(b, a)))
		record_done(&place_record, &v->reported_location);
}

/* Which elements the printed threads point to, in words; NULL when they tell nothing. */
static char *candidate_words(const struct assertion *a, const struct model *m, const struct finding *f)
{
	const struct process *p = m->runs[0].processes.n ? LIST_AT(struct process, m->runs[0].processes, 0) : NULL;
	struct candidate_hint hint = {.torch = p ? p->torch : NULL};
	struct candidate_set set;
	struct buf b = {0};

	if (f) {
		hint.shape = f->tensor.shape.v;
		hint.ndim = f->tensor.shape.n;
		hint.dtype = f->tensor.dtype;
	}
	candidates_of(a, &hint, &set);
	if (set.exactness == CANDIDATES_EXACT || set.exactness == CANDIDATES_ONE_OF) {
		buf_str(&b, set.exactness == CANDIDATES_EXACT ? "" : "one of ");
		for (size_t i = 0; i < set.elements.n && i < 16; i++)
			buf_fmt(&b, "%s%" PRId64, i ? ", " : "", set.elements.v[i]);
		if (set.more || set.elements.n > 16)
			buf_str(&b, ", ...");
		buf_fmt(&b, " (%s)", set.operand);
	} else if (set.exactness == CANDIDATES_MODULO) {
		buf_fmt(&b, "%s: %s", set.operand, set.rule);
	}
	candidate_set_done(&set);
	return b.len ? buf_take(&b) : NULL;
}

static void add_steps(struct strs *next, const struct model *m, const char *ids)
{
	char *copy = xstrdup(ids), *rest = copy;

	for (char *id; rest && (id = strsep(&rest, " "));) {
		const struct step_result *s = model_step(m, id);

		if (*id && (s == NULL || step_is(s, "skipped")))
			strs_add(next, id);
	}
	free(copy);
}

/*
 * A program that died because this machine has no GPU has not come to its own fault; the CPU run has, if it
 * raised something. Fills log, and returns the run that it is of.
 */
static const struct run_facts *telling_run(const struct model *m, struct fault *log)
{
	const struct run_facts *own = m->nruns ? &m->runs[0] : NULL, *cpu = model_run(m, "cpu_rerun");
	struct fault other;

	fault_of_run(own, log);
	if (cpu == NULL || strcmp(log->kind, "python_error") != 0 || strcmp(log->log.cause, "build_mismatch") != 0)
		return own;
	fault_of_run(cpu, &other);
	if (strcmp(other.kind, "none") == 0 || strcmp(other.log.cause, "build_mismatch") == 0) {
		fault_done(&other);
		return own;
	}
	fault_done(log);
	*log = other;
	return cpu;
}

void verdict_of(const struct model *m, struct verdict *ret)
{
	struct fault log;

	memset(ret, 0, sizeof *ret);
	record_init(&tensor_record, &ret->tensor);
	record_init(&place_record, &ret->location);
	record_init(&place_record, &ret->reported_location);
	record_init(&scan_record, &ret->data);
	ret->bad_count = INT_UNKNOWN;
	const struct run_facts *r = telling_run(m, &log);
	const struct finding *f = choose(m, &log);

	ret->known = f || strcmp(log.kind, "none") != 0;
	if (ret->known) {
		if (f)
			from_finding(ret, m, &log, f);
		else
			from_log(ret, m, r, &log);
		shorten(&ret->location, m);
		set_reported(ret, m, &log);
		ret->kernel = xstrdup(log.log.kernel);
		if (log.assertion)
			ret->candidates = candidate_words(log.assertion, m, f);
		if (!f && m->runs[0].run.argv.n == 0) /* a log: the program was not at hand */
			add_steps(&ret->next, m, log.log.steps ? log.log.steps : catalog_cause(ret->cause)->steps);
		verdict_words(ret, m, &log, f);
	}
	fault_done(&log);
}

void verdict_done(struct verdict *v)
{
	free(v->summary);
	free(v->why);
	free(v->fix);
	free(v->op);
	record_done(&tensor_record, &v->tensor);
	free(v->bad_values.v);
	list_done(&v->bad_elements, &element_record);
	record_done(&place_record, &v->location);
	record_done(&place_record, &v->reported_location);
	free(v->module);
	record_done(&scan_record, &v->data);
	free(v->kernel);
	free(v->candidates);
	strs_done(&v->next);
	memset(v, 0, sizeof *v);
}
