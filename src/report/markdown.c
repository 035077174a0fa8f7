#include "report/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/show.h"

/* Shown text with the characters that markdown would read as markup made plain. */
static void prose(struct buf *out, const char *text)
{
	struct buf b = {0};

	show_text(&b, text);
	for (size_t i = 0; i < b.len; i++) {
		if (strchr("\\`*_{}[]<>#|~", b.data[i]))
			buf_chr(out, '\\');
		buf_chr(out, b.data[i]);
	}
	buf_done(&b);
}

/* A code span; text with backticks in it needs a longer fence. */
static void code(struct buf *out, const char *text)
{
	struct buf b = {0};

	show_text(&b, text);
	const char *fence = b.data && strchr(b.data, '`') ? "``" : "`";

	buf_fmt(out, "%s%s%s%s%s", fence, fence[1] ? " " : "", b.data ? b.data : "", fence[1] ? " " : "", fence);
	buf_done(&b);
}

static void row(struct buf *out, const char *label, struct buf *text)
{
	if (text->len) {
		buf_fmt(out, "| %s | ", label);
		prose(out, text->data);
		buf_str(out, " |\n");
	}
	buf_done(text);
}

static void facts(const struct report *r, struct buf *out)
{
	const struct verdict *v = &r->verdict;
	struct buf b = {0};

	buf_str(out, "| | |\n| --- | --- |\n");
	buf_fmt(&b, "%s (%s)", v->cause, v->confidence);
	row(out, "cause", &b);
	if (v->location.file)
		report_place(&v->location, &b);
	row(out, "line", &b);
	if (v->reported_location.file)
		report_place(&v->reported_location, &b);
	row(out, "Python names", &b);
	show_text(&b, v->module);
	row(out, "module", &b);
	if (v->tensor.name || v->tensor.role)
		report_operand(v, &b);
	else
		show_text(&b, v->op);
	row(out, "operand", &b);
	report_values(v, &b);
	row(out, "allowed", &b);
	report_data(v, &b);
	row(out, "data", &b);
	show_text(&b, v->kernel);
	row(out, "kernel", &b);
	show_text(&b, v->candidates);
	row(out, "candidates", &b);
}

static void assertions(const struct report *r, struct buf *out)
{
	for (size_t i = 0; r->model->nruns && i < r->model->runs[0].assertions.n; i++) {
		const struct assertion *a = LIST_AT(struct assertion, r->model->runs[0].assertions, i);

		buf_str(out, i ? "- " : "\n## Assertions\n\n- ");
		code(out, a->condition ? a->condition : "?");
		buf_str(out, " at ");
		code(out, a->source ? a->source : "an unreadable place");
		if (a->kernel) {
			buf_str(out, " in ");
			code(out, a->kernel);
		}
		if (a->count != INT_UNKNOWN)
			buf_fmt(out, ", %" PRId64 " line%s", a->count, a->count == 1 ? "" : "s");
		buf_chr(out, '\n');
	}
}

void report_markdown(const struct report *r, struct buf *out)
{
	const struct verdict *v = &r->verdict;

	buf_str(out, "# ");
	prose(out, v->known ? v->summary : "Nothing was found: the program ended well");
	buf_str(out, "\n\n");
	if (v->known) {
		facts(r, out);
		if (r->fault.message) {
			buf_str(out, "\nError: ");
			code(out, r->fault.message);
			buf_chr(out, '\n');
		}
		assertions(r, out);
		buf_str(out, "\n## Why\n\n");
		prose(out, v->why);
		buf_str(out, "\n\n## Fix\n\n");
		prose(out, v->fix);
		buf_chr(out, '\n');
	}
	for (size_t i = 0; i < r->model->steps.n; i++) {
		const struct step_result *s = LIST_AT(struct step_result, r->model->steps, i);

		if (i == 0)
			buf_str(out, "\n## Steps\n\n| step | result | finding |\n| --- | --- | --- |\n");
		buf_str(out, "| ");
		prose(out, s->id);
		buf_str(out, " | ");
		prose(out, s->status);
		buf_str(out, " | ");
		prose(out, s->finding);
		buf_str(out, " |\n");
	}
}
