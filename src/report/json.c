#include "report/report.h"

#include <string.h>
#include <time.h>

static json_t *int_or_null(int64_t i)
{
	return i == INT_UNKNOWN ? json_null() : json_integer(i);
}

static void created_text(double created, char out[32])
{
	time_t seconds = (time_t)created;
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static json_t *program_json(const struct report *r)
{
	static const struct run_facts none;
	const struct run_facts *run = r->model->nruns ? &r->model->runs[0] : &none;
	const struct process *p = run->processes.n ? LIST_AT(struct process, run->processes, 0) : NULL;
	const struct machine *machine = &r->model->machine;
	json_t *json = record_encode(&run_record, &run->run, true);
	json_t *devices = json_array();
	int64_t ranks = INT_UNKNOWN;

	json_object_del(json, "name");
	json_object_del(json, "pid");
	for (size_t i = 0; i < machine->gpus.n; i++)
		json_array_append_new(devices, text_json(machine->gpus.v[i]));
	for (size_t i = 0; i < run->processes.n; i++) {
		int64_t n = LIST_AT(struct process, run->processes, i)->ranks;

		/* A process without a launcher is the only one. */
		if (ranks == INT_UNKNOWN || n > ranks)
			ranks = n == INT_UNKNOWN ? 1 : n;
	}
	json_object_set_new(json, "exit_status", int_or_null(run->has_ended ? run->ended.exit_status : INT_UNKNOWN));
	json_object_set_new(json, "signal", int_or_null(run->has_ended ? run->ended.signal : INT_UNKNOWN));
	json_object_set_new(json, "python", text_json(p ? p->python : NULL));
	json_object_set_new(json, "torch", text_json(p ? p->torch : NULL));
	json_object_set_new(json, "cuda", text_json(p ? p->cuda : NULL));
	json_object_set_new(json, "devices", devices);
	json_object_set_new(json, "ranks", int_or_null(ranks));
	return json;
}

static json_t *assertion_json(const struct assertion *a)
{
	json_t *json = record_encode(&assertion_record, a, true);
	json_t *first = json_pack("{s:O, s:O}", "block", json_object_get(json, "first_block"), "thread",
				  json_object_get(json, "first_thread"));
	static const char *const inner[] = {"id", "pairs", "more", "first_block", "first_thread", "form"};

	for (size_t i = 0; i < COUNT(inner); i++)
		json_object_del(json, inner[i]);
	json_object_set_new(json, "first", first);
	return json;
}

static json_t *fault_json(const struct report *r)
{
	json_t *assertions = json_array();

	for (size_t i = 0; r->model->nruns && i < r->model->runs[0].assertions.n; i++)
		json_array_append_new(assertions,
				      assertion_json(LIST_AT(struct assertion, r->model->runs[0].assertions, i)));
	return json_pack("{s:s, s:o, s:o, s:o, s:o}", "kind", r->fault.kind, "error_code",
			 int_or_null(r->fault.error_code), "message", text_json(r->fault.message), "rank",
			 int_or_null(r->fault.rank), "assertions", assertions);
}

static json_t *place_json(const struct place *p)
{
	return p->file ? record_encode(&place_record, p, true) : json_null();
}

static json_t *tensor_json(const struct verdict *v)
{
	return v->tensor.role || v->tensor.name ? record_encode(&tensor_record, &v->tensor, true) : json_null();
}

static json_t *elements_json(const struct list *elements)
{
	json_t *json = json_array();

	for (size_t i = 0; i < elements->n; i++) {
		json_t *e = record_encode(&element_record, LIST_AT(struct element, *elements, i), true);

		json_array_append(json, json_object_get(e, "at"));
		json_decref(e);
	}
	return json;
}

static json_t *data_json(const struct scan *s)
{
	json_t *json;
	static const char *const inner[] = {"errors", "problem", "found"};

	if (s->total_bad_samples == INT_UNKNOWN && s->samples.n == 0 && s->batch == INT_UNKNOWN)
		return json_null();
	json = record_encode(&scan_record, s, true);
	/* A count that was stopped half way is no total. */
	if (!s->complete && (s->size == INT_UNKNOWN || s->scanned < s->size))
		json_object_set_new(json, "total_bad_samples", json_null());
	for (size_t i = 0; i < COUNT(inner); i++)
		json_object_del(json, inner[i]);
	return json;
}

static json_t *verdict_json(const struct verdict *v)
{
	json_t *json, *values = json_array();

	for (size_t i = 0; i < v->bad_values.n; i++)
		json_array_append_new(values, value_json(v->bad_values.v[i]));
	json = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "cause", v->cause, "confidence", v->confidence,
			 "summary", text_json(v->summary), "why", text_json(v->why), "fix",
			 text_json(v->fix), "op", text_json(v->op), "tensor", tensor_json(v));
	json_object_set_new(json, "valid_range", value_known(v->low) || value_known(v->high) ?
			    json_pack("[o, o]", value_json(v->low), value_json(v->high)) : json_null());
	json_object_set_new(json, "bad_values", values);
	json_object_set_new(json, "bad_count", int_or_null(v->bad_count));
	json_object_set_new(json, "bad_elements", elements_json(&v->bad_elements));
	json_object_set_new(json, "location", place_json(&v->location));
	json_object_set_new(json, "reported_location", place_json(&v->reported_location));
	json_object_set_new(json, "module", text_json(v->module));
	json_object_set_new(json, "data", data_json(&v->data));
	json_object_set_new(json, "kernel", text_json(v->kernel));
	json_object_set_new(json, "candidates", text_json(v->candidates));
	return json;
}

void report_json(const struct report *r, struct buf *out)
{
	char created[32];
	json_t *steps = json_array();

	created_text(r->created, created);
	for (size_t i = 0; i < r->model->steps.n; i++)
		json_array_append_new(steps, record_encode(&step_result_record,
							   LIST_AT(struct step_result, r->model->steps, i), true));
	json_t *json = json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "schema", "cuwhy-report/1", "cuwhy",
				 PACKAGE_VERSION, "created", created, "program", program_json(r), "fault",
				 fault_json(r), "verdict", r->verdict.known ? verdict_json(&r->verdict) : json_null(),
				 "steps", steps, "session", text_json(r->session));
	report_dump(json, out);
}
