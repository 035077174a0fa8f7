#include "capture/launch.h"

#include <stdlib.h>
#include <string.h>

bool launch_is_python(const char *command)
{
	const char *name = strrchr(command, '/');

	name = name ? name + 1 : command;
	return starts_with(name, "python") && strspn(name + 6, "0123456789.") == strlen(name + 6);
}

/*
 * Where the program begins among a Python's arguments: the index of the script, of -c or of -m (0 when
 * there is none: the interactive prompt, a script on standard input). *ret_deaf: PYTHONPATH or site is
 * off, so that a sitecustomize on PYTHONPATH is never run. CPython's command line: Python/initconfig.c.
 */
static size_t program_at(char *const *argv, bool *ret_deaf)
{
	*ret_deaf = false;
	for (size_t i = 1; argv[i]; i++) {
		const char *arg = argv[i];

		if (arg[0] != '-')
			return i;
		if (strcmp(arg, "-") == 0 || strcmp(arg, "--") == 0)
			return 0;
		if (arg[1] == '-') {
			if (strcmp(arg, "--check-hash-based-pycs") == 0 && argv[i + 1])
				i++;
			continue;
		}
		for (const char *c = arg + 1; *c; c++) {
			if (strchr("IES", *c))
				*ret_deaf = true;
			if (*c == 'c' || *c == 'm')
				return c == arg + 1 ? i : 0; /* -Ic CODE is left alone */
			if (*c == 'W' || *c == 'X') {
				i += c[1] == '\0' && argv[i + 1];
				break;
			}
		}
	}
	return 0;
}

static void add_fmt(struct strs *s, const char *name, const char *value)
{
	char *text = xasprintf("%s=%s", name, value);

	strs_add(s, text);
	free(text);
}

void launch_plan(struct launch *ret, char *const *argv, enum launch_mode mode, const char *agent,
		 const char *socket, const char *pythonpath, double hold, bool hide_gpus)
{
	static const char *const mode_names[] = {"observe", "redirect", "blocking"};
	bool deaf = false;
	size_t program = socket && launch_is_python(argv[0]) ? program_at(argv, &deaf) : 0;

	*ret = (struct launch){{0}, {0}};
	for (size_t i = 0; argv[i]; i++) {
		if (deaf && program && i == program) {
			char *runner = xasprintf("%s/runner.py", agent);

			strs_add(&ret->argv, runner);
			free(runner);
		}
		strs_add(&ret->argv, argv[i]);
	}
	strs_add(&ret->argv, NULL);
	ret->argv.n--;
	if (mode == LAUNCH_BLOCKING)
		add_fmt(&ret->env, "CUDA_LAUNCH_BLOCKING", "1");
	if (hide_gpus)
		add_fmt(&ret->env, "CUDA_VISIBLE_DEVICES", "");
	if (socket == NULL)
		return;
	char *site = xasprintf("%s/inject", agent);
	char *path = xasprintf("%s%s%s", site, pythonpath && *pythonpath ? ":" : "", pythonpath ? pythonpath : "");
	char *seconds = xasprintf("%.0f", hold);

	add_fmt(&ret->env, "PYTHONPATH", path);
	add_fmt(&ret->env, "CUWHY_SOCKET", socket);
	add_fmt(&ret->env, "CUWHY_MODE", mode_names[mode]);
	add_fmt(&ret->env, "CUWHY_HOLD", seconds);
	add_fmt(&ret->env, "CUWHY_SITE", site);
	free(site);
	free(path);
	free(seconds);
}

void launch_done(struct launch *l)
{
	strs_done(&l->argv);
	strs_done(&l->env);
}
