/* facts: every record goes to JSON and back unchanged, and what is unknown stays unknown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "facts/model.h"

static json_t *parse(const char *text)
{
	json_t *json = json_loads(text, 0, NULL);

	assert_non_null(json);
	return json;
}

static void unknown_stays_unknown(void **state)
{
	(void)state;
	for (int k = 0; k < EVENT_KINDS; k++) {
		const struct record *r = event_record((enum event_kind)k);
		struct event ev = {.kind = (enum event_kind)k};

		if (r == NULL)
			continue;
		json_t *empty = json_object();

		assert_true(record_decode(r, empty, &ev.as, NULL));
		json_t *back = record_encode(r, &ev.as, false);
		const char *name;
		json_t *value;

		/* Arrays are empty, seconds are 0, embedded records hold the same: nothing else is there. */
		json_object_foreach(back, name, value)
			assert_true(json_is_array(value) || json_is_object(value) || json_is_real(value));
		json_decref(back);
		json_decref(empty);
		event_done(&ev);
	}
}

static void finding_round_trip(void **state)
{
	static const char text[] = "{\"pid\": 7, \"cause\": \"label_range\", \"op\": \"f\", \"tensor\": {\"role\": "
		"\"target\", \"shape\": [], \"min\": \"nan\", \"max\": 10}, \"low\": 0, \"high\": 9.5, \"bad_values\": "
		"[10, \"-inf\"], \"bad_count\": 2, \"bad_elements\": [{\"at\": [1, 2]}], \"place\": {\"file\": \"a.py\", "
		"\"line\": 3}, \"stack\": [{\"file\": \"b.py\"}], \"seen\": true}";
	json_t *json = parse(text);
	struct finding f, copy;

	(void)state;
	assert_true(record_decode(&finding_record, json, &f, NULL));
	assert_non_null(f.tensor.shape.v); /* a scalar's shape is known to be [] */
	assert_int_equal(f.tensor.shape.n, 0);
	assert_true(isnan(f.tensor.min.d));
	assert_true(f.bad_values.v[1].d < 0 && isinf(f.bad_values.v[1].d));
	assert_int_equal(LIST_AT(struct element, f.bad_elements, 0)->at.v[1], 2);
	assert_true(f.seen);
	assert_false(f.silent);
	record_copy(&finding_record, &copy, &f);
	json_t *back = record_encode(&finding_record, &copy, false);

	assert_true(json_equal(json_object_get(json, "bad_values"), json_object_get(back, "bad_values")));
	assert_true(json_equal(json_object_get(json, "bad_elements"), json_object_get(back, "bad_elements")));
	json_decref(back);
	json_decref(json);
	record_done(&finding_record, &f);
	record_done(&finding_record, &copy);
}

static void wrong_types_are_unknown(void **state)
{
	json_t *json = parse("{\"role\": 5, \"shape\": \"big\", \"min\": [1], \"dtype\": null}");
	struct tensor t;
	struct error e = {{0}};

	(void)state;
	assert_true(record_decode(&tensor_record, json, &t, NULL));
	assert_null(t.role);
	assert_null(t.shape.v);
	assert_false(value_known(t.min));
	assert_false(record_decode(&tensor_record, json_object_get(json, "shape"), &t, &e));
	json_decref(json);
}

static void values_read_as_a_person_writes_them(void **state)
{
	char text[32];

	(void)state;
	assert_string_equal(value_text(value_int(INT64_MAX), text), "9223372036854775807");
	assert_string_equal(value_text(value_real(0.5), text), "0.5");
	assert_string_equal(value_text(value_real(-NAN), text), "nan");
}

static void text_that_is_no_utf8_becomes_json(void **state)
{
	json_t *json = text_json("caf\xe9");

	(void)state;
	assert_string_equal(json_string_value(json), "caf\xef\xbf\xbd");
	json_decref(json);
	json = text_json(NULL);
	assert_true(json_is_null(json));
	json_decref(json);
}

static void model_keeps_the_latest_of_what_is_told_again(void **state)
{
	struct model m;
	struct assertion a;
	struct event ev = {.kind = EVENT_ASSERTION, .id = 1, .time = 5};

	(void)state;
	model_init(&m);
	record_init(&assertion_record, &a);
	a.id = 4;
	for (int count = 1; count <= 3; count++) {
		a.count = count;
		ev.as.assertion = a;
		model_fold(&m, &ev);
	}
	ev.run = 63; /* a damaged session: runs up to there are made */
	model_fold(&m, &ev);
	ev.run = 1000000;
	model_fold(&m, &ev);
	assert_int_equal(m.runs[0].assertions.n, 1);
	assert_int_equal(LIST_AT(struct assertion, m.runs[0].assertions, 0)->count, 3);
	assert_int_equal(m.nruns, 64);
	assert_null(model_run(&m, "main"));
	assert_null(model_step(&m, "cpu_rerun"));
	model_done(&m);
}

static void fold_json(struct model *m, enum event_kind kind, double time, const char *text)
{
	json_t *json = parse(text);
	struct event ev;

	assert_true(event_decode(&ev, kind, json, NULL));
	ev.id = m->last_event + 1;
	ev.time = time;
	ev.run = 0;
	model_fold(m, &ev);
	event_done(&ev);
	json_decref(json);
}

static void a_good_batch_does_not_take_a_bad_operand_away(void **state)
{
	struct model m;

	(void)state;
	model_init(&m);
	for (int i = 0; i < 500; i++) {
		char *text = xasprintf("{\"op\": \"f\", \"tensor\": {\"name\": \"t%d\", \"max\": 4}, \"place\": {\"line\": %d}}",
				       i, i % 7);

		fold_json(&m, EVENT_OPERAND, 1, text);
		free(text);
	}
	fold_json(&m, EVENT_OPERAND, 1, "{\"op\": \"f\", \"tensor\": {\"name\": \"t8\", \"max\": 9}, \"place\": {\"line\": 1}}");
	fold_json(&m, EVENT_FINDING, 1, "{\"op\": \"f\", \"tensor\": {\"name\": \"t8\", \"max\": 10}, \"bad_count\": 2,"
		  "\"place\": {\"line\": 1}}");
	fold_json(&m, EVENT_OPERAND, 1, "{\"op\": \"f\", \"tensor\": {\"name\": \"t8\", \"max\": 3}, \"place\": {\"line\": 1}}");
	assert_int_equal(m.runs[0].operands.n, 500);
	const struct operand *o = LIST_AT(struct operand, m.runs[0].operands, 8);

	assert_string_equal(o->tensor.name, "t8");
	assert_true(o->bad && o->bad_count == 2 && o->tensor.max.i == 10);
	model_done(&m);
}

static void progress_is_of_the_step_that_runs(void **state)
{
	struct model m;

	(void)state;
	model_init(&m);
	fold_json(&m, EVENT_STEP, 10, "{\"id\": \"dataloader_scan\", \"status\": \"running\"}");
	fold_json(&m, EVENT_PROGRESS, 12, "{\"done\": 5, \"total\": 50}");
	assert_true(m.step_started == 10 && m.progress_at == 12 && m.progress.total == 50);
	fold_json(&m, EVENT_STEP, 13, "{\"id\": \"cpu_rerun\", \"status\": \"running\"}");
	assert_true(m.step_started == 13 && m.progress_at == 0 && m.progress.total == INT_UNKNOWN);
	model_done(&m);
}

static void lines_are_found_in_excerpts(void **state)
{
	struct model m;

	(void)state;
	model_init(&m);
	fold_json(&m, EVENT_EXCERPT, 1, "{\"file\": \"a.py\", \"first\": 10, \"lines\": [\"x\", \"y\"]}");
	fold_json(&m, EVENT_EXCERPT, 1, "{\"file\": \"a.py\", \"first\": -9223372036854775807, \"lines\": [\"evil\"]}");
	assert_string_equal(model_line(&m, "a.py", 11), "y");
	assert_null(model_line(&m, "a.py", 12));
	assert_null(model_line(&m, "a.py", 9));
	assert_null(model_line(&m, "b.py", 10));
	model_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_stays_unknown),
		cmocka_unit_test(finding_round_trip),
		cmocka_unit_test(wrong_types_are_unknown),
		cmocka_unit_test(values_read_as_a_person_writes_them),
		cmocka_unit_test(text_that_is_no_utf8_becomes_json),
		cmocka_unit_test(model_keeps_the_latest_of_what_is_told_again),
		cmocka_unit_test(a_good_batch_does_not_take_a_bad_operand_away),
		cmocka_unit_test(progress_is_of_the_step_that_runs),
		cmocka_unit_test(lines_are_found_in_excerpts),
	};

	return cmocka_run_group_tests_name("facts", tests, NULL, NULL);
}
