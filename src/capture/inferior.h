/*
 * inferior: the user's program as a child process: launch, output, signals, exit status.
 *
 * The user's own run is passed through: the program keeps its standard input and controlling terminal,
 * and its stdout and stderr come out on ours byte for byte, separately; each is a pty of the same size
 * where ours is a terminal, else a pipe. What our stdout does not take at once is kept, and the program not
 * read until it does; when its reader is gone, the program's is too.
 *
 * A rerun is kept apart: no input, no terminal, output only to the callback. It runs under a small process
 * of ours, its supervisor, that ends everything it started when it is over, is stopped, or we have died.
 */
#ifndef CUWHY_INFERIOR_H
#define CUWHY_INFERIOR_H

#include "base/loop.h"
#include "facts/record.h"

struct inferior;

struct inferior_spec {
	char *const *argv;
	const struct strs *env; /* NAME=VALUE to set, NAME to unset; may be NULL */
	int cwd;                /* directory descriptor to start in; -1: ours */
	bool apart;             /* a rerun: see above */
	int stdout_to;          /* passed through to this descriptor, usually 1 */
};

struct inferior_events {
	void *user;
	void (*output)(void *user, int stream, const char *bytes, size_t len); /* stream 1 or 2 */
	/* The program has ended; what it printed has been told and passed through. signal is 0 when it exited. */
	void (*ended)(void *user, int exit_status, int signal);
};

/*
 * NULL when the command cannot be run: *ret_status is then 126 (not executable), 127 (not found) or
 * 125 (our own failure), and e says what, where and what to do.
 */
struct inferior *inferior_start(struct loop *l, const struct inferior_spec *spec,
				const struct inferior_events *events, int *ret_status, struct error *e);
void inferior_free(struct inferior *inf); /* a rerun that still runs is killed, with all it started */

/* Takes what the program has printed until now, as far as it can be passed through without waiting. */
void inferior_drain(struct inferior *inf);
int inferior_pid(const struct inferior *inf); /* of the program itself */
/* Rerun only: SIGTERM now, SIGKILL to all of it `grace` seconds later. */
void inferior_stop(struct inferior *inf, double grace);

#endif
