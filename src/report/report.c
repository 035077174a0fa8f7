#include "report/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/show.h"

static const struct {
	const char *name;
	void (*write)(const struct report *r, struct buf *out);
} formats[] = {
	{"text", report_text},
	{"markdown", report_markdown},
	{"json", report_json},
	{"sarif", report_sarif},
};

void report_init(struct report *r, const struct model *m, const char *session, bool redact)
{
	*r = (struct report){.model = m, .session = session, .created = now_wall(), .redact = redact, .width = 100};
	fault_of(m, &r->fault);
	verdict_of(m, &r->verdict);
}

void report_done(struct report *r)
{
	fault_done(&r->fault);
	verdict_done(&r->verdict);
}

void report_write(const struct report *r, const char *format, struct buf *out)
{
	for (size_t i = 0; i < COUNT(formats); i++) {
		if (strcmp(formats[i].name, format) == 0)
			formats[i].write(r, out);
	}
	if (r->redact)
		report_redact(r, out);
}

void report_dump(json_t *json, struct buf *out)
{
	char *text = json_dumps(json, JSON_INDENT(1) | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15));

	for (const char *p = text; *p; p++) {
		if (*p == 0x7f)
			buf_str(out, "\\u007f");
		else
			buf_chr(out, *p);
	}
	buf_chr(out, '\n');
	free(text);
	json_decref(json);
}

bool report_news(const struct model *m)
{
	struct verdict v;

	verdict_of(m, &v);
	bool known = v.known; /* it is whenever there is a fault */

	verdict_done(&v);
	return known;
}

void report_place(const struct place *p, struct buf *out)
{
	show_text(out, p->file);
	if (p->line != INT_UNKNOWN)
		buf_fmt(out, ":%" PRId64, p->line);
	if (p->function && strcmp(p->function, "<module>") != 0) {
		buf_str(out, ", in ");
		show_text(out, p->function);
		buf_str(out, "()");
	}
}

static void ints_text(const struct ints *n, size_t most, struct buf *out)
{
	for (size_t i = 0; i < n->n && i < most; i++)
		buf_fmt(out, "%s%" PRId64, i ? ", " : "", n->v[i]);
	if (n->n > most)
		buf_str(out, ", ...");
}

void report_operand(const struct verdict *v, struct buf *out)
{
	const struct tensor *t = &v->tensor;
	char text[32];

	show_text(out, t->name ? t->name : t->role ? t->role : "?");
	if (t->role && t->name && strcmp(t->name, t->role) != 0) {
		buf_str(out, " (");
		show_text(out, t->role);
		if (v->op) {
			buf_str(out, " of ");
			show_text(out, v->op);
		}
		buf_chr(out, ')');
	} else if (v->op) {
		buf_str(out, " of ");
		show_text(out, v->op);
	}
	if (t->dtype || t->shape.v) {
		buf_str(out, ": ");
		show_text(out, t->dtype);
		if (t->shape.v) {
			buf_str(out, t->dtype ? " [" : "[");
			ints_text(&t->shape, 16, out);
			buf_chr(out, ']');
		}
	}
	if (t->device) {
		buf_str(out, " on ");
		show_text(out, t->device);
	}
	if (value_known(t->min))
		buf_fmt(out, ", min %s", value_text(t->min, text));
	if (value_known(t->max))
		buf_fmt(out, ", max %s", value_text(t->max, text));
}

void report_values(const struct verdict *v, struct buf *out)
{
	char a[32], b[32];

	if (value_known(v->low) && value_known(v->high))
		buf_fmt(out, "%s to %s", value_text(v->low, a), value_text(v->high, b));
	else if (value_known(v->low))
		buf_fmt(out, "%s or more", value_text(v->low, a));
	if (v->bad_count == INT_UNKNOWN && v->bad_values.n == 0)
		return;
	if (out->len)
		buf_str(out, "; ");
	if (v->bad_count != INT_UNKNOWN)
		buf_fmt(out, "%" PRId64 " element%s not: ", v->bad_count, v->bad_count == 1 ? " is" : "s are");
	else
		buf_str(out, "not allowed: ");
	for (size_t i = 0; i < v->bad_values.n && i < 8; i++)
		buf_fmt(out, "%s%s", i ? ", " : "", value_text(v->bad_values.v[i], a));
	if (v->bad_values.n > 8)
		buf_str(out, ", ...");
	for (size_t i = 0; v->tensor.shape.n && i < v->bad_elements.n && i < 4; i++) {
		buf_str(out, i ? " [" : ", at [");
		ints_text(&LIST_AT(struct element, v->bad_elements, i)->at, 16, out);
		buf_chr(out, ']');
	}
	if (v->bad_elements.n > 4)
		buf_str(out, " ...");
}

void report_data(const struct verdict *v, struct buf *out)
{
	const struct scan *s = &v->data;

	if (s->samples.n == 0 && s->total_bad_samples == INT_UNKNOWN && s->batch == INT_UNKNOWN)
		return;
	show_text(out, s->loader ? s->loader : "the loader");
	if (s->epoch != INT_UNKNOWN)
		buf_fmt(out, ", epoch %" PRId64, s->epoch);
	if (s->batch != INT_UNKNOWN)
		buf_fmt(out, ", batch %" PRId64, s->batch);
	if (s->samples.n) {
		buf_fmt(out, ": sample%s ", s->samples.n == 1 ? "" : "s");
		ints_text(&s->samples, 8, out);
		buf_str(out, " of ");
		show_text(out, s->dataset ? s->dataset : "its dataset");
	}
	if (s->total_bad_samples != INT_UNKNOWN) {
		buf_fmt(out, "; %" PRId64 " bad sample%s", s->total_bad_samples, s->total_bad_samples == 1 ? "" : "s");
		if (s->complete)
			buf_str(out, " in all");
		else if (s->scanned != INT_UNKNOWN)
			buf_fmt(out, " among the %" PRId64 " looked at", s->scanned);
		if (s->errors != INT_UNKNOWN && s->errors > 0)
			buf_fmt(out, ", %" PRId64 " could not be read", s->errors);
	}
}
