/*
 * live: ties the inferior, its agents, logscan, the session and the model together.
 *
 * Everything that happens goes through live_emit: it gets its number and time, is appended to the
 * session, folded into the model, and told to the observer, in this order.
 */
#ifndef CUWHY_LIVE_H
#define CUWHY_LIVE_H

#include "base/loop.h"
#include "facts/model.h"
#include "session/session.h"

struct live;

struct live_options {
	char *const *argv;
	const char *agent;       /* folder of the agent's files */
	int stdout_to;           /* where the program's stdout is passed through to */
	struct session *session; /* may be NULL: nothing is recorded; stays the caller's */
	void *user;
	void (*told)(void *user, const struct event *ev); /* after each event; may be NULL */
	void (*session_lost)(void *user, const char *why);  /* once, when the session cannot be written on */
};

struct live *live_new(struct loop *l, struct model *m, const struct live_options *o);
/* Whatever is held is released, reruns are killed, a program that still runs is left running. */
void live_free(struct live *v);

/* Takes what ev holds. Its run is 0 unless set. */
void live_emit(struct live *v, struct event *ev);

/*
 * Starts the user's own run and waits until it ended, or one of its processes is held after a fault.
 * False when it could not be started: *ret_status is 125, 126 or 127.
 */
bool live_run(struct live *v, int *ret_status, struct error *e);

enum live_rerun { LIVE_RERUN_CPU, LIVE_RERUN_BLOCKING };

/*
 * Runs the program once more, apart, until it ends, is held at a fault, or `limit` seconds are over.
 * The run's facts are in the model under its name. False when it could not be started.
 */
bool live_rerun(struct live *v, enum live_rerun how, double limit, struct error *e);

/* Asks the held process that has seen the bad values to walk the data that fed the failing operation, and
 * waits. False when there is none, or it gave no answer. */
bool live_scan(struct live *v, double limit, struct error *e);

/* Lets go of everything held and waits for the user's own run to end; a process that hangs in a scan is ended.
 * Returns the status to exit with: the program's own, or 128+N for signal N. */
int live_finish(struct live *v);

/* The user asked to stop: SIGINT, SIGTERM, SIGHUP or SIGQUIT while no run of their own is going on. */
bool live_interrupted(const struct live *v);

#endif
