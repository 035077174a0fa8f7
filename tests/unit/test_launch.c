/* launch: how the agent gets in, for each way of starting a Python. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "capture/launch.h"

static char *joined(const struct strs *s)
{
	struct buf b = {0};

	for (size_t i = 0; i < s->n; i++)
		buf_fmt(&b, "%s%s", i ? " " : "", s->v[i]);
	return buf_take(&b);
}

static void isolated_pythons_go_through_the_runner(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"python train.py --lr 1", "python train.py --lr 1"},
		{"python -u train.py -I", "python -u train.py -I"},
		{"python3 -I train.py -x", "python3 -I /a/runner.py train.py -x"},
		{"/usr/bin/python3.11 -uE -W ignore -m pkg a", "/usr/bin/python3.11 -uE -W ignore /a/runner.py -m pkg a"},
		{"python -S -c code a", "python -S /a/runner.py -c code a"},
		{"python -X importtime -s t.py", "python -X importtime -s t.py"},
		{"python -I", "python -I"},
		{"python -I -", "python -I -"},
		{"torchrun -I t.py", "torchrun -I t.py"},
		{"pythonista -I t.py", "pythonista -I t.py"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		char *text = xstrdup(rows[i].in), *rest = text, *argv[16] = {0};
		struct launch l;

		for (size_t k = 0; rest; k++)
			argv[k] = strsep(&rest, " ");
		launch_plan(&l, argv, LAUNCH_OBSERVE, "/a", "/s", NULL, 5, false);
		assert_null(l.argv.v[l.argv.n]);
		char *got = joined(&l.argv);

		assert_string_equal(got, rows[i].out);
		free(got);
		free(text);
		launch_done(&l);
	}
}

static void environment_holds_what_the_agent_needs(void **state)
{
	char *argv[] = {"x", NULL};
	struct launch l;

	(void)state;
	launch_plan(&l, argv, LAUNCH_REDIRECT, "/a", "/s", "/mine", 5, true);
	char *env = joined(&l.env);

	assert_string_equal(env, "CUDA_VISIBLE_DEVICES= PYTHONPATH=/a/inject:/mine CUWHY_SOCKET=/s "
			    "CUWHY_MODE=redirect CUWHY_HOLD=5 CUWHY_SITE=/a/inject");
	free(env);
	launch_done(&l);
	launch_plan(&l, argv, LAUNCH_BLOCKING, "/a", NULL, "/mine", 5, false);
	env = joined(&l.env);
	assert_string_equal(env, "CUDA_LAUNCH_BLOCKING=1"); /* no socket: the program is left as it is */
	free(env);
	launch_done(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(isolated_pythons_go_through_the_runner),
		cmocka_unit_test(environment_holds_what_the_agent_needs),
	};

	return cmocka_run_group_tests_name("launch", tests, NULL, NULL);
}
