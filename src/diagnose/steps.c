#include "diagnose/steps.h"

#include <inttypes.h>
#include <string.h>

#include "diagnose/verdict.h"

/* The user's own run: the model's first. */
static const struct run_facts *own(const struct model *m)
{
	return m->nruns ? &m->runs[0] : NULL;
}

static bool from_log_alone(const struct model *m)
{
	const struct run_facts *r = own(m);

	return r == NULL || r->run.name == NULL || strcmp(r->run.name, "log") == 0;
}

static bool seen_in(const struct run_facts *r)
{
	for (size_t i = 0; r && i < r->findings.n; i++) {
		if (LIST_AT(struct finding, r->findings, i)->seen)
			return true;
	}
	return false;
}

static bool is_any(const char *word, const char *const *words)
{
	for (size_t i = 0; word && words[i]; i++) {
		if (strcmp(word, words[i]) == 0)
			return true;
	}
	return false;
}

static const char *const value_causes[] = {"label_range", "label_dtype", "index_range", "embedding_range",
	"probability_invalid", "bce_input_range", "nan", "other", NULL};
static const char *const shape_causes[] = {"shape", "label_shape", "batch_size", "empty_batch", "size_limit", NULL};
static const char *const device_causes[] = {"device_mismatch", NULL};

/* The first finding of any run whose cause is among the words. */
static const struct finding *finding_among(const struct model *m, const char *const *causes)
{
	for (size_t k = 0; k < m->nruns; k++) {
		for (size_t i = 0; i < m->runs[k].findings.n; i++) {
			const struct finding *f = LIST_AT(struct finding, m->runs[k].findings, i);

			if (is_any(f->cause, causes))
				return f;
		}
	}
	return NULL;
}

static void say_operand(const struct finding *f, struct buf *out)
{
	if (f->tensor.name || f->tensor.role)
		buf_fmt(out, "%s", f->tensor.name ? f->tensor.name : f->tensor.role);
	else
		buf_str(out, "an operand");
	if (f->op)
		buf_fmt(out, " of %s", f->op);
	if (f->place.file && f->place.line != INT_UNKNOWN) {
		const char *name = strrchr(f->place.file, '/');

		buf_fmt(out, " at %s:%" PRId64, name ? name + 1 : f->place.file, f->place.line);
	}
}

static void say_finding(const struct finding *f, struct buf *out)
{
	char a[32], b[32];

	say_operand(f, out);
	if (f->bad_values.n && value_known(f->low)) {
		buf_fmt(out, ": %s, where %s", value_text(f->bad_values.v[0], a), value_text(f->low, b));
		if (value_known(f->high))
			buf_fmt(out, " to %s is allowed", value_text(f->high, b));
		else
			buf_str(out, " or more is allowed");
		if (f->bad_count != INT_UNKNOWN)
			buf_fmt(out, ", %" PRId64 " element%s", f->bad_count, f->bad_count == 1 ? "" : "s");
	} else if (f->detail) {
		buf_fmt(out, ": %s", f->detail);
	} else if (f->bad_values.n) {
		buf_fmt(out, ": %s", value_text(f->bad_values.v[0], a));
	}
}

static int64_t add_known(int64_t sum, int64_t more)
{
	return more > 0 && sum < INT64_MAX - more ? sum + more : sum;
}

/* How many calls were looked at, over all runs and processes; *ret_ops counts distinct operations. */
static int64_t calls_checked(const struct model *m, int64_t *ret_unseen, size_t *ret_ops)
{
	struct strs ops = {0};
	int64_t calls = 0;

	*ret_unseen = 0;
	for (size_t k = 0; k < m->nruns; k++) {
		for (size_t i = 0; i < m->runs[k].checked.n; i++) {
			const struct checked *c = LIST_AT(struct checked, m->runs[k].checked, i);
			size_t at = 0;

			calls = add_known(calls, c->calls);
			*ret_unseen = add_known(*ret_unseen, c->unseen);
			while (at < ops.n && c->op && strcmp(ops.v[at], c->op) != 0)
				at++;
			if (at == ops.n && c->op)
				strs_add(&ops, c->op);
		}
	}
	*ret_ops = ops.n;
	strs_done(&ops);
	return calls;
}

static bool skip_log(const struct model *m, struct buf *reason)
{
	if (!from_log_alone(m))
		return false;
	buf_str(reason, "there is only a log; run the program under cuwhy for this");
	return true;
}

/* Without the agent in a process nothing was looked at. */
static bool skip_unwatched(const struct model *m, struct buf *reason)
{
	if (skip_log(m, reason))
		return true;
	for (size_t k = 0; k < m->nruns; k++) {
		if (m->runs[k].processes.n)
			return false;
	}
	buf_str(reason, "no process of the program imported torch where the agent could see it");
	return true;
}

/* crash_capture */

static bool skip_never(const struct model *m, struct buf *reason)
{
	(void)m, (void)reason;
	return false;
}

static enum step_status judge_crash(const struct model *m, struct buf *out)
{
	const struct run_facts *r = own(m);
	struct fault f;
	enum step_status status = STEP_FOUND;

	fault_of(m, &f);
	if (strcmp(f.kind, "none") == 0) {
		buf_str(out, from_log_alone(m) ? "no error of a GPU program in this log" : "no error was printed or raised");
		status = STEP_CLEAN;
	} else if (r->assertions.n) {
		const struct assertion *a = LIST_AT(struct assertion, r->assertions, 0);

		buf_fmt(out, "%s: assertion `%s` failed%s%s", a->source ? a->source : "at an unreadable place",
			a->condition ? a->condition : "?", a->kernel ? " in " : "", a->kernel ? a->kernel : "");
	} else {
		buf_fmt(out, "%s: %s", f.kind, f.message ? f.message : "no message");
	}
	if (f.rank != INT_UNKNOWN)
		buf_fmt(out, " (rank %" PRId64 ")", f.rank);
	fault_done(&f);
	return status;
}

/* cpu_rerun */

/* Faults that a CPU cannot show: they are about the machine, not the program's values. */
static const char *const not_on_cpu[] = {"out_of_memory", "no_kernel_image", "signal", NULL};

static bool skip_cpu(const struct model *m, struct buf *reason)
{
	const struct run_facts *r = own(m);
	struct fault f;
	bool skip = true;

	if (skip_log(m, reason))
		return true;
	fault_of(m, &f);
	if (seen_in(r))
		buf_str(reason, "the first run has seen the bad values already");
	else if (r->processes.n == 0)
		buf_str(reason, "no process of the program imported torch where the agent could see it");
	else if (is_any(f.kind, not_on_cpu))
		buf_fmt(reason, "a CPU cannot show a fault of the kind %s", f.kind);
	else if (strcmp(f.kind, "none") == 0 && !r->cuda_absent)
		buf_str(reason, "the program ended well");
	else if (strcmp(f.kind, "python_error") == 0 && (r->findings.n || strcmp(f.log.cause, "build_mismatch") != 0))
		buf_str(reason, "the error is an ordinary Python error, and the traceback names its line");
	else
		skip = false;
	fault_done(&f);
	return skip;
}

static enum step_status judge_rerun(const struct run_facts *r, const char *found_nothing, struct buf *out)
{
	if (r == NULL || !r->has_ended) {
		buf_str(out, "the program could not be started again");
		return STEP_FAILED;
	}
	if (r->findings.n) {
		say_finding(LIST_AT(struct finding, r->findings, 0), out);
		return STEP_FOUND;
	}
	if (r->ended.stopped) {
		buf_fmt(out, "stopped: %s; nothing was found until then", r->ended.stopped);
		return STEP_FAILED;
	}
	if (r->raised.n) {
		const struct raised *e = LIST_AT(struct raised, r->raised, 0);

		buf_fmt(out, "%s: %s", e->type ? e->type : "an exception", e->text ? e->text : "");
		return STEP_FOUND;
	}
	if (r->ended.signal != INT_UNKNOWN && r->ended.signal > 0) {
		buf_fmt(out, "the program was ended by signal %" PRId64, r->ended.signal);
		return STEP_FAILED;
	}
	if (r->ended.exit_status != 0) {
		buf_fmt(out, "the program ended with status %" PRId64 " before anything was found", r->ended.exit_status);
		return STEP_FAILED;
	}
	buf_str(out, found_nothing);
	return STEP_CLEAN;
}

static enum step_status judge_cpu(const struct model *m, struct buf *out)
{
	return judge_rerun(model_run(m, "cpu_rerun"), "the same program ends well on the CPU", out);
}

/* label_check */

static enum step_status judge_labels(const struct model *m, struct buf *out)
{
	const struct finding *f = finding_among(m, value_causes);
	int64_t unseen, calls;
	size_t ops;

	if (f) {
		say_finding(f, out);
		return STEP_FOUND;
	}
	calls = calls_checked(m, &unseen, &ops);
	if (calls == 0 && unseen == 0) {
		buf_str(out, "no call of an operation that takes labels or indices was looked at");
		return STEP_CLEAN;
	}
	if (calls - unseen <= 0) {
		buf_fmt(out, "all %" PRId64 " labels and indices were on the GPU and could not be looked at", unseen);
		return STEP_FAILED;
	}
	buf_fmt(out, "%" PRId64 " call%s of %zu operation%s looked at, all labels and indices in range",
		calls - unseen, calls - unseen == 1 ? "" : "s", ops, ops == 1 ? "" : "s");
	if (unseen)
		buf_fmt(out, " (%" PRId64 " more were on the GPU and could not be looked at)", unseen);
	return STEP_CLEAN;
}

/* dataloader_scan */

static bool skip_scan(const struct model *m, struct buf *reason)
{
	const struct finding *f = verdict_finding(m);

	if (skip_log(m, reason))
		return true;
	if (f && f->bad_values.n && is_any(f->cause, value_causes))
		return false;
	buf_str(reason, f ? "the fault is not in the values of the data" : "no operand is known whose data could be scanned");
	return true;
}

static enum step_status judge_scan(const struct model *m, struct buf *out)
{
	const struct scan *s = NULL;

	for (size_t k = 0; k < m->nruns; k++) {
		if (m->runs[k].scans.n)
			s = LIST_AT(struct scan, m->runs[k].scans, m->runs[k].scans.n - 1);
	}
	if (s == NULL) {
		buf_str(out, "no answer");
		return STEP_FAILED;
	}
	if (s->problem) {
		buf_str(out, s->problem);
		return STEP_SKIPPED;
	}
	if (s->total_bad_samples == INT_UNKNOWN) {
		buf_str(out, "the answer does not say how many samples are bad");
		return STEP_FAILED;
	}
	buf_fmt(out, "%" PRId64 " bad of ", s->total_bad_samples);
	if (s->scanned != INT_UNKNOWN)
		buf_fmt(out, "%" PRId64 " samples of %s", s->scanned, s->dataset ? s->dataset : "the dataset");
	if (s->size != INT_UNKNOWN && s->scanned < s->size)
		buf_str(out, " (stopped at the limit)");
	if (s->errors != INT_UNKNOWN && s->errors > 0)
		buf_fmt(out, ", %" PRId64 " could not be read", s->errors);
	if (s->samples.n)
		buf_fmt(out, "; in the failing batch: sample %" PRId64 "%s", s->samples.v[0], s->samples.n > 1 ? ", ..." : "");
	return s->total_bad_samples > 0 ? STEP_FOUND : STEP_CLEAN;
}

/* shape_check */

static enum step_status judge_shapes(const struct model *m, struct buf *out)
{
	const struct finding *f = finding_among(m, shape_causes);
	int64_t unseen;
	size_t ops;

	if (f) {
		say_finding(f, out);
		return STEP_FOUND;
	}
	buf_str(out, calls_checked(m, &unseen, &ops) ? "batch sizes and shapes fit in every call looked at" :
		"no operation was called whose shapes could be compared");
	return STEP_CLEAN;
}

/* device_check */

static enum step_status judge_devices(const struct model *m, struct buf *out)
{
	const struct finding *f = finding_among(m, device_causes);
	struct fault fault;
	enum step_status status = STEP_CLEAN;

	if (f) {
		say_finding(f, out);
		return STEP_FOUND;
	}
	fault_of(m, &fault);
	if (strcmp(fault.kind, "no_kernel_image") == 0 || strcmp(fault.kind, "device_mismatch") == 0) {
		buf_str(out, fault.message);
		status = STEP_FOUND;
	} else if (m->machine.gpus.n == 0) {
		buf_str(out, m->machine.note ? m->machine.note : "this machine shows no NVIDIA GPU");
		const struct run_facts *cpu = model_run(m, "cpu_rerun");

		if (cpu && cpu->checked.n)
			buf_str(out, "; devices were followed in the CPU run, none was mixed");
	} else {
		buf_fmt(out, "%s%s%s%s", m->machine.gpus.v[0], m->machine.gpus.n > 1 ? " and others" : "",
			m->machine.driver ? ", driver " : "", m->machine.driver ? m->machine.driver : "");
	}
	fault_done(&fault);
	return status;
}

/* blocking_launch */

static bool skip_blocking(const struct model *m, struct buf *reason)
{
	const struct finding *f = verdict_finding(m);
	struct fault fault;
	bool skip = true;

	if (skip_log(m, reason))
		return true;
	fault_of(m, &fault);
	if (m->machine.gpus.n == 0)
		buf_fmt(reason, "needs a GPU: %s", m->machine.note ? m->machine.note : "this machine shows none");
	else if (f && f->seen && f->place.file)
		buf_str(reason, "the value and the line are known already");
	else if (!fault.late)
		buf_str(reason, "the error is not one that is reported late");
	else
		skip = false;
	fault_done(&fault);
	return skip;
}

static enum step_status judge_blocking(const struct model *m, struct buf *out)
{
	return judge_rerun(model_run(m, "blocking_launch"), "the fault does not show when launches are synchronous: "
			   "it may be a race, or another cause", out);
}

const struct step step_table[] = {
	{"crash_capture", "What was printed and raised?",
	 "The assertion lines and the error say which check failed; the traceback often names a later line.",
	 STEP_READ, 0, skip_never, judge_crash},
	{"cpu_rerun", "Does the same program fail on the CPU, and where?",
	 "On a CPU the error comes at the guilty line, with the value in its message.",
	 STEP_CPU, 600, skip_cpu, judge_cpu},
	{"label_check", "Are labels and indices in range?",
	 "Most of these errors are a class number or an index that the model has no place for.",
	 STEP_READ, 0, skip_unwatched, judge_labels},
	{"dataloader_scan", "Which samples of the data are bad?",
	 "One bad label in a million fails a training run at random; only a walk over the data finds all.",
	 STEP_SCAN, 120, skip_scan, judge_scan},
	{"shape_check", "Do batch sizes and shapes fit?",
	 "The last batch is often smaller, and a wrong shape can look like a wrong value to a kernel.",
	 STEP_READ, 0, skip_unwatched, judge_shapes},
	{"device_check", "Is everything on the right device, and does the build fit the GPU?",
	 "An operation needs all of its tensors on one device, and a PyTorch built for that GPU.",
	 STEP_READ, 0, skip_log, judge_devices},
	{"blocking_launch", "Which launch fails when the GPU reports at once?",
	 "With synchronous launches Python stops at the call that is guilty.",
	 STEP_BLOCKING, 600, skip_blocking, judge_blocking},
};

const size_t step_count = COUNT(step_table);

const struct step *step_find(const char *id)
{
	for (size_t i = 0; i < step_count; i++) {
		if (strcmp(step_table[i].id, id) == 0)
			return &step_table[i];
	}
	return NULL;
}

const char *step_status_name(enum step_status status)
{
	static const char *const names[] = {"running", "found", "clean", "skipped", "failed"};

	return names[status];
}
