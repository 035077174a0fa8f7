/* verdict: what is concluded from facts, how sure it is, and that nothing is claimed that was not seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/steps.h"
#include "diagnose/verdict.h"
#include "report/report.h"

static struct model m;
static struct verdict v;

static int set_up(void **state)
{
	(void)state;
	model_init(&m);
	memset(&v, 0, sizeof v);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	verdict_done(&v);
	model_done(&m);
	return 0;
}

/* Folds an event given as JSON, the way a session has it. */
static void happens(int run, const char *kind_name, const char *fact)
{
	struct event ev;
	enum event_kind kind;
	json_t *json = json_loads(fact, 0, NULL);

	assert_non_null(json);
	assert_true(event_kind_of(kind_name, &kind));
	assert_true(event_decode(&ev, kind, json, NULL));
	ev.run = run;
	ev.id = m.last_event + 1;
	model_fold(&m, &ev);
	event_done(&ev);
	json_decref(json);
}

static const char nll[] = "{\"id\": 1, \"source\": \"aten/src/ATen/native/cuda/Loss.cu:250\", \"kernel\": "
	"\"nll_loss_forward_reduce_cuda_kernel_2d\", \"condition\": \"t >= 0 && t < n_classes\", \"form\": \"cuda\", "
	"\"count\": 2, \"first_block\": [0,0,0], \"first_thread\": [5,0,0], \"pairs\": [0,0,0,5,0,0]}";
static const char late[] = "{\"type\": \"RuntimeError\", \"text\": \"CUDA error: device-side assert triggered\", "
	"\"late\": true}";
static const char trace[] = "{\"type\": \"RuntimeError\", \"text\": \"CUDA error: device-side assert triggered\", "
	"\"frames\": [{\"file\": \"/w/train.py\", \"line\": 70, \"function\": \"<module>\"}, {\"file\": \"/w/train.py\", "
	"\"line\": 57, \"function\": \"train\", \"code\": \"total += loss.item()\"}]}";
static const char label[] = "{\"pid\": 3, \"cause\": \"label_range\", \"op\": \"torch.nn.functional.cross_entropy\", "
	"\"tensor\": {\"role\": \"target\", \"name\": \"labels\", \"shape\": [64], \"dtype\": \"int64\", \"device\": "
	"\"cuda:0\", \"min\": 0, \"max\": 10}, \"low\": 0, \"high\": 9, \"bad_values\": [10], \"bad_count\": 2, "
	"\"bad_elements\": [{\"at\": [5]}, {\"at\": [37]}], \"place\": {\"file\": \"/w/train.py\", \"line\": 42, "
	"\"function\": \"train\", \"code\": \"loss = criterion(out, labels)\"}, \"seen\": true}";

static void the_sentence_of_the_readme(void **state)
{
	(void)state;
	happens(0, "run", "{\"name\": \"main\", \"argv\": [\"python\", \"train.py\"], \"cwd\": \"/w\"}");
	happens(0, "assertion", nll);
	happens(0, "failure", late);
	happens(0, "traceback", trace);
	happens(1, "run", "{\"name\": \"cpu_rerun\"}");
	happens(1, "finding", label);
	happens(1, "scan", "{\"loader\": \"train_loader\", \"dataset\": \"train_set\", \"epoch\": 0, \"batch\": 312, "
		"\"samples\": [19985, 20001], \"total_bad_samples\": 41, \"complete\": true}");
	verdict_of(&m, &v);
	assert_string_equal(v.confidence, "certain");
	assert_string_equal(v.summary, "label 10 in sample 19985 of train_set, but the model has classes 0 to 9; "
			    "launched at train.py:42, not at line 57 where Python says");
	assert_string_equal(v.location.file, "train.py");
	assert_int_equal(v.reported_location.line, 57);
	assert_int_equal(v.data.total_bad_samples, 41);
	assert_non_null(strstr(v.fix, "labels holds 10"));
	assert_string_equal(v.candidates, "one of 5, 37 (rows of the target)");
}

static void a_log_alone_is_never_certain(void **state)
{
	(void)state;
	happens(0, "run", "{\"name\": \"log\"}");
	happens(0, "assertion", nll);
	happens(0, "failure", late);
	happens(0, "traceback", trace);
	verdict_of(&m, &v);
	assert_string_equal(v.cause, "label_range");
	assert_string_equal(v.confidence, "likely");
	assert_null(v.location.file); /* the traceback is late, and names no loss */
	assert_int_equal(v.reported_location.line, 57);
	assert_true(v.next.n > 0);
}

static void a_traceback_through_the_operation_is_the_launch(void **state)
{
	(void)state;
	happens(0, "assertion", nll);
	happens(0, "failure", late);
	happens(0, "traceback", "{\"type\": \"RuntimeError\", \"text\": \"x\", \"frames\": [{\"file\": \"/w/t.py\", "
		"\"line\": 9, \"function\": \"step\", \"code\": \"loss = crit(a, b)\"}, {\"file\": "
		"\"/usr/lib/python3/dist-packages/torch/nn/functional.py\", \"line\": 3014, \"function\": \"cross_entropy\"}]}");
	verdict_of(&m, &v);
	assert_int_equal(v.location.line, 9);
	assert_null(v.reported_location.file);
}

static void what_was_not_seen_is_not_certain(void **state)
{
	(void)state;
	happens(0, "finding", "{\"cause\": \"shape\", \"op\": \"torch.nn.functional.linear\", \"detail\": \"d\"}");
	verdict_of(&m, &v);
	assert_string_equal(v.confidence, "likely");
}

static void another_operation_than_the_log_tells_of_is_not_certain(void **state)
{
	(void)state;
	happens(0, "assertion", nll);
	happens(1, "finding", "{\"cause\": \"embedding_range\", \"op\": \"torch.nn.functional.embedding\", \"low\": 0, "
		"\"high\": 3, \"bad_values\": [4], \"seen\": true}");
	verdict_of(&m, &v);
	assert_string_equal(v.confidence, "likely");
}

static void the_finding_that_fits_the_log_wins(void **state)
{
	(void)state;
	happens(0, "assertion", nll);
	happens(1, "finding", "{\"cause\": \"embedding_range\", \"op\": \"torch.nn.functional.embedding\", \"low\": 0, "
		"\"high\": 3, \"bad_values\": [4], \"seen\": true}");
	happens(1, "finding", label);
	verdict_of(&m, &v);
	assert_string_equal(v.cause, "label_range");
	assert_string_equal(v.confidence, "certain");
}

static void data_that_is_fine_is_cleared(void **state)
{
	(void)state;
	happens(0, "run", "{\"name\": \"main\"}");
	happens(0, "assertion", nll);
	happens(1, "run", "{\"name\": \"cpu_rerun\"}");
	happens(1, "ended", "{\"exit_status\": 0}");
	happens(1, "checked", "{\"pid\": 1, \"op\": \"torch.nn.functional.cross_entropy\", \"calls\": 30, \"unseen\": 0}");
	happens(0, "step", "{\"id\": \"cpu_rerun\", \"status\": \"clean\"}");
	happens(0, "step", "{\"id\": \"label_check\", \"status\": \"clean\"}");
	verdict_of(&m, &v);
	assert_string_equal(v.cause, "internal");
	assert_string_equal(v.confidence, "possible");
	assert_non_null(strstr(v.why, "your data is not at fault"));
}

static void another_operation_clears_nothing(void **state)
{
	(void)state;
	happens(0, "run", "{\"name\": \"main\"}");
	happens(0, "assertion", nll);
	happens(1, "run", "{\"name\": \"cpu_rerun\"}");
	happens(1, "checked", "{\"pid\": 1, \"op\": \"torch.nn.functional.embedding\", \"calls\": 30, \"unseen\": 0}");
	happens(0, "step", "{\"id\": \"cpu_rerun\", \"status\": \"clean\"}");
	happens(0, "step", "{\"id\": \"label_check\", \"status\": \"clean\"}");
	verdict_of(&m, &v);
	assert_string_equal(v.cause, "label_range");
}

static void judge_of(const char *id, const char *ended, const char *want)
{
	struct buf b = {0};

	happens(1, "run", "{\"name\": \"cpu_rerun\"}");
	happens(1, "ended", ended);
	assert_string_equal(step_status_name(step_find(id)->judge(&m, &b)), want);
	buf_done(&b);
}

static void a_rerun_that_failed_is_not_clean(void **state)
{
	(void)state;
	judge_of("cpu_rerun", "{\"exit_status\": 0}", "clean");
	judge_of("cpu_rerun", "{\"exit_status\": 3}", "failed");
	judge_of("cpu_rerun", "{\"exit_status\": 0, \"stopped\": \"interrupted\"}", "failed");
	judge_of("cpu_rerun", "{\"signal\": 9}", "failed");
}

static void who_stops_a_program_gets_no_verdict(void **state)
{
	(void)state;
	happens(0, "failure", "{\"type\": \"KeyboardInterrupt\", \"text\": \"\"}");
	happens(0, "ended", "{\"signal\": 2}");
	verdict_of(&m, &v);
	assert_false(v.known);
}

static void redacted_reports_keep_the_project_alone(void **state)
{
	struct report r;
	struct buf b = {0};

	(void)state;
	happens(0, "run", "{\"name\": \"main\", \"cwd\": \"/home/alice/proj\", \"argv\": [\"/home/alice/venv/bin/python\", "
		"\"/home/alice/proj/train.py\", \"--user=alice\"]}");
	happens(0, "failure", "{\"type\": \"OSError\", \"text\": \"/data/secret/x.csv: no such file for alice; malice stays\"}");
	report_init(&r, &m, "/home/alice/.local/state/cuwhy/s.cuwhy", true);
	report_write(&r, "json", &b);
	assert_null(strstr(b.data, "/home"));
	assert_null(strstr(b.data, "secret"));
	assert_null(strstr(b.data, "=alice"));
	assert_non_null(strstr(b.data, "\"train.py\""));
	assert_non_null(strstr(b.data, "malice stays"));
	json_t *json = json_loads(b.data, 0, NULL);

	assert_non_null(json);
	json_decref(json);
	buf_done(&b);
	report_done(&r);
}

static void a_program_that_ended_well_has_no_verdict(void **state)
{
	(void)state;
	happens(0, "run", "{\"name\": \"main\"}");
	happens(0, "ended", "{\"exit_status\": 0}");
	verdict_of(&m, &v);
	assert_false(v.known);
}

static void a_signal_is_a_fault_of_its_own(void **state)
{
	struct fault f;

	(void)state;
	happens(0, "ended", "{\"signal\": 11}");
	fault_of(&m, &f);
	assert_string_equal(f.kind, "signal");
	fault_done(&f);
	verdict_of(&m, &v);
	assert_string_equal(v.cause, "unknown");
}

static void without_a_gpu_the_cpu_run_tells(void **state)
{
	(void)state;
	happens(0, "run", "{\"name\": \"main\"}");
	happens(0, "failure", "{\"type\": \"AssertionError\", \"text\": \"Torch not compiled with CUDA enabled\"}");
	happens(1, "run", "{\"name\": \"cpu_rerun\"}");
	happens(1, "failure", "{\"type\": \"KeyError\", \"text\": \"'label'\"}");
	happens(1, "traceback", "{\"type\": \"KeyError\", \"text\": \"'label'\", \"frames\": [{\"file\": \"t.py\", \"line\": 4}]}");
	verdict_of(&m, &v);
	assert_string_equal(v.cause, "other");
	assert_int_equal(v.location.line, 4);
}

static void consequences_are_not_the_cause(void **state)
{
	struct fault f;

	(void)state;
	happens(0, "failure", "{\"type\": \"RuntimeError\", \"text\": \"CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when "
		"calling `cublasCreate(handle)`\"}");
	happens(0, "failure", late);
	fault_of(&m, &f);
	assert_string_equal(f.kind, "device_assert");
	fault_done(&f);
}

static void every_step_can_be_judged_on_nothing(void **state)
{
	(void)state;
	happens(0, "run", "{\"name\": \"main\"}");
	for (size_t i = 0; i < step_count; i++) {
		struct buf b = {0};

		if (!step_table[i].needless(&m, &b))
			step_table[i].judge(&m, &b);
		assert_true(b.len > 0); /* a step never ends silently */
		buf_done(&b);
	}
}

static void every_format_survives_hostile_facts(void **state)
{
	static const char *const formats[] = {"text", "markdown", "json", "sarif"};

	(void)state;
	happens(0, "run", "{\"name\": \"main\", \"argv\": [\"\\u001b]0;x\\u0007\"], \"cwd\": \"/w\"}");
	happens(0, "assertion", "{\"id\": 1, \"source\": \"\\u001b[2J`|\", \"condition\": \"a`b\\u202e\", \"count\": 1}");
	happens(0, "finding", "{\"cause\": \"label_range\", \"op\": \"\\u001b[1m\", \"tensor\": {\"name\": \"\\u0007\"}, "
		"\"bad_values\": [1], \"seen\": true, \"place\": {\"file\": \"\\u001b\", \"line\": -4}}");
	happens(0, "finding", "{\"cause\": \"no such cause\", \"seen\": true}");
	happens(0, "step", "{\"id\": \"label_check\"}");
	happens(0, "step", "{}");
	happens(0, "checked", "{\"op\": \"x\", \"calls\": 9223372036854775807}");
	happens(0, "checked", "{\"op\": \"y\", \"calls\": 9223372036854775807}");
	for (size_t i = 0; i < COUNT(formats); i++) {
		struct report r;
		struct buf b = {0};

		report_init(&r, &m, "/s\033", false);
		report_write(&r, formats[i], &b);
		assert_null(strchr(b.data, '\033'));
		assert_null(strchr(b.data, '\a'));
		assert_null(strstr(b.data, i < 2 ? "\xe2\x80\xae" : "\033"));
		buf_done(&b);
		report_done(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name_) cmocka_unit_test_setup_teardown(name_, set_up, tear_down)
		TEST(the_sentence_of_the_readme),
		TEST(a_log_alone_is_never_certain),
		TEST(a_traceback_through_the_operation_is_the_launch),
		TEST(what_was_not_seen_is_not_certain),
		TEST(another_operation_than_the_log_tells_of_is_not_certain),
		TEST(the_finding_that_fits_the_log_wins),
		TEST(data_that_is_fine_is_cleared),
		TEST(another_operation_clears_nothing),
		TEST(a_rerun_that_failed_is_not_clean),
		TEST(who_stops_a_program_gets_no_verdict),
		TEST(redacted_reports_keep_the_project_alone),
		TEST(a_program_that_ended_well_has_no_verdict),
		TEST(a_signal_is_a_fault_of_its_own),
		TEST(without_a_gpu_the_cpu_run_tells),
		TEST(consequences_are_not_the_cause),
		TEST(every_step_can_be_judged_on_nothing),
		TEST(every_format_survives_hostile_facts),
	};

	return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
