/*
 * launch: with which arguments and environment the inferior is started, so that the agent gets in.
 * Pure: it reads argv and names, and starts nothing.
 */
#ifndef CUWHY_LAUNCH_H
#define CUWHY_LAUNCH_H

#include "facts/record.h"

struct launch {
	struct strs argv; /* NULL-terminated for exec: argv.v[argv.n] is NULL */
	struct strs env;  /* NAME=VALUE to set, NAME to unset */
};

/* How the agent behaves in that run: the values of CUWHY_MODE in docs/agent.md. */
enum launch_mode { LAUNCH_OBSERVE, LAUNCH_REDIRECT, LAUNCH_BLOCKING };

/*
 * agent: the folder that holds inject/, cuwhy_agent/ and runner.py. socket: where cuwhy listens; NULL
 * starts the program without an agent. pythonpath: its value now, or NULL. hide_gpus: the run must not
 * see a real GPU. A Python that ignores PYTHONPATH (-I, -E, -S) is started through runner.py.
 */
void launch_plan(struct launch *ret, char *const *argv, enum launch_mode mode, const char *agent,
		 const char *socket, const char *pythonpath, double hold, bool hide_gpus);
void launch_done(struct launch *l);

/* Does the command's name say that it is a Python: python, python3, /usr/bin/python3.11. */
bool launch_is_python(const char *command);

#endif
