#include "report/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/show.h"

enum {
	LABEL = 11,
	STEP_TEXT = 30, /* columns before a step's finding */
	STEP_WRAP = 13,
};

static const char bold[] = "\033[1m", red[] = "\033[31m", green[] = "\033[32m", dim[] = "\033[2m",
	plain[] = "\033[0m";

static void styled(const struct report *r, struct buf *out, const char *style, const char *text)
{
	buf_fmt(out, "%s%s%s", r->color ? style : "", text, r->color ? plain : "");
}

/* Appends text from `column` on, wrapped at words, further lines indented; it must be safe to show already. */
static void wrap(const struct report *r, struct buf *out, size_t column, size_t indent, const char *text)
{
	size_t start = column;

	for (const char *word = text; *word;) {
		size_t len = strcspn(word, " ");

		if (column + len > r->width && column > start) {
			out->len -= out->data[out->len - 1] == ' '; /* none at the end of a line */
			buf_fmt(out, "\n%*s", (int)indent, "");
			column = start = indent;
		}
		buf_add(out, word, len);
		column += len;
		word += len;
		if (*word) {
			buf_chr(out, *word++);
			column++;
		}
	}
	buf_chr(out, '\n');
}

/* "  label      text" */
static void line(const struct report *r, struct buf *out, const char *label, const char *text)
{
	char padded[LABEL + 1];

	if (text == NULL || *text == '\0')
		return;
	snprintf(padded, sizeof padded, "%-*s", LABEL, label);
	buf_str(out, "  ");
	styled(r, out, dim, padded);
	wrap(r, out, LABEL + 2, LABEL + 2, text);
}

static void line_of(const struct report *r, struct buf *out, const char *label, const char *text)
{
	struct buf b = {0};

	show_text(&b, text);
	line(r, out, label, b.data);
	buf_done(&b);
}

static void where(const struct report *r, struct buf *out)
{
	const struct verdict *v = &r->verdict;
	struct buf b = {0};

	if (v->location.file) {
		report_place(&v->location, &b);
		if (v->location.code) {
			buf_str(&b, ":  ");
			show_text(&b, v->location.code);
		}
		line(r, out, "line", b.data);
		buf_done(&b);
	}
	if (v->reported_location.file) {
		buf_str(&b, "Python names ");
		report_place(&v->reported_location, &b);
		buf_str(&b, v->location.file ? "; that is a later line, since GPU errors are reported late" :
			"; GPU errors are reported late, so that the fault may lie before it");
		line(r, out, "reported", b.data);
		buf_done(&b);
	}
	line_of(r, out, "module", v->module);
}

static void operand(const struct report *r, struct buf *out)
{
	const struct verdict *v = &r->verdict;
	struct buf b = {0};

	if (v->tensor.name || v->tensor.role) {
		report_operand(v, &b);
		line(r, out, "operand", b.data);
		buf_done(&b);
	} else {
		line_of(r, out, "operation", v->op);
	}
	report_values(v, &b);
	line(r, out, "allowed", b.data);
	buf_done(&b);
	report_data(v, &b);
	line(r, out, "data", b.data);
	buf_done(&b);
}

static void kernels(const struct report *r, struct buf *out)
{
	const struct list *all = &r->model->runs[0].assertions;
	struct buf b = {0};

	for (size_t i = 0; r->model->nruns && i < all->n && i < 4; i++) {
		const struct assertion *a = LIST_AT(struct assertion, *all, i);

		show_text(&b, a->source ? a->source : "at an unreadable place");
		if (a->kernel) {
			buf_str(&b, ", ");
			show_text(&b, a->kernel);
		}
		buf_str(&b, ": ");
		show_text(&b, a->condition);
		if (a->count != INT_UNKNOWN)
			buf_fmt(&b, "  (%" PRId64 " line%s", a->count, a->count == 1 ? "" : "s");
		if (a->first_block.n == 3 && a->first_thread.n == 3)
			buf_fmt(&b, "; first: block [%" PRId64 ",%" PRId64 ",%" PRId64 "] thread [%" PRId64 ",%" PRId64
				",%" PRId64 "]", a->first_block.v[0], a->first_block.v[1], a->first_block.v[2],
				a->first_thread.v[0], a->first_thread.v[1], a->first_thread.v[2]);
		if (a->count != INT_UNKNOWN)
			buf_chr(&b, ')');
		line(r, out, i ? "" : "assertion", b.data);
		buf_done(&b);
	}
	line_of(r, out, "kernel", r->verdict.kernel);
	line_of(r, out, "candidates", r->verdict.candidates);
}

static void steps(const struct report *r, struct buf *out)
{
	const struct list *all = &r->model->steps;

	if (all->n)
		buf_chr(out, '\n');
	for (size_t i = 0; i < all->n; i++) {
		const struct step_result *s = LIST_AT(struct step_result, *all, i);
		const char *style = step_is(s, "found") ? red : step_is(s, "clean") ? green : dim;
		char status[16];
		struct buf b = {0};

		snprintf(status, sizeof status, "%-8s", s->status ? s->status : "?");
		buf_fmt(out, "  %zu ", i + 1);
		show_text(&b, s->id);
		buf_fmt(out, "%-16s ", b.data);
		buf_done(&b);
		styled(r, out, style, status);
		buf_chr(out, ' ');
		show_text(&b, s->finding);
		if (s->seconds >= 1)
			buf_fmt(&b, " (%.1f s)", s->seconds);
		wrap(r, out, STEP_TEXT, STEP_WRAP, b.data ? b.data : "");
		buf_done(&b);
	}
}

/* What a log leaves to be done. */
static void next(const struct report *r, struct buf *out)
{
	const struct strs *ids = &r->verdict.next;
	struct buf b = {0};

	if (ids->n == 0)
		return;
	buf_str(&b, "run it under cuwhy, which is sure once it has seen the value: cuwhy python YOUR_SCRIPT.py; "
		"the steps that would tell more: ");
	for (size_t i = 0; i < ids->n; i++)
		buf_fmt(&b, "%s%s", i ? ", " : "", ids->v[i]);
	line(r, out, "next", b.data);
	buf_done(&b);
}

/* On a machine without a GPU the program dies of that first; its own fault shows in the CPU run. */
static void error(const struct report *r, struct buf *out)
{
	bool aside = strcmp(r->fault.kind, "python_error") == 0 && strcmp(r->fault.log.cause, "build_mismatch") == 0 &&
		     strcmp(r->verdict.cause, "build_mismatch") != 0;
	struct buf b = {0};

	show_text(&b, r->fault.message);
	if (aside)
		buf_str(&b, " (there is no GPU here; the fault above was found by running it on the CPU)");
	line(r, out, "error", b.data);
	buf_done(&b);
}

void report_text(const struct report *r, struct buf *out)
{
	const struct verdict *v = &r->verdict;
	struct buf b = {0};

	buf_str(out, "cuwhy: ");
	show_text(&b, v->known ? v->summary : "nothing was found: the program ended well");
	buf_str(out, r->color ? bold : "");
	wrap(r, out, 7, 7, b.data ? b.data : "");
	buf_str(out, r->color ? plain : "");
	buf_done(&b);
	buf_chr(out, '\n');
	if (v->known) {
		char *cause = xasprintf("%s (%s)", v->cause, v->confidence);

		line(r, out, "cause", cause);
		free(cause);
		where(r, out);
		operand(r, out);
		kernels(r, out);
		error(r, out);
		line_of(r, out, "why", v->why);
		line_of(r, out, "fix", v->fix);
	}
	next(r, out);
	steps(r, out);
	for (size_t i = 0; i < r->model->notes.n; i++)
		line_of(r, out, i ? "" : "note", LIST_AT(struct note, r->model->notes, i)->text);
	if (r->session) {
		buf_chr(out, '\n');
		line_of(r, out, "session", r->session);
	}
}
