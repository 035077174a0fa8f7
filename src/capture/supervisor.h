/*
 * supervisor: the process between us and a rerun. As a subreaper it becomes the parent of every daemon that
 * the program leaves, and of nothing that is not the rerun's. When the program is over, when it is told to,
 * or when we have died, it kills all that is left, then ends as the program did.
 */
#ifndef CUWHY_SUPERVISOR_H
#define CUWHY_SUPERVISOR_H

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>

/* Signals to a supervisor: SIGTERM is passed on to the program, SIGQUIT ends the whole tree. */
enum {
	SUPERVISOR_POLITELY = SIGTERM,
	SUPERVISOR_AT_ONCE = SIGQUIT,
};

/*
 * Runs in a process that was forked by `parent`, and never returns. become(user) runs in the program's own
 * process and does not return either; failed(user, errno) tells that there was none to be had.
 */
_Noreturn void supervisor_run(pid_t parent, void (*become)(void *user), void (*failed)(void *user, int why),
			      void *user);

/* Waits for a child that is about to end, but not for ever: one that is stuck in a driver is left behind. */
void supervisor_reap_soon(pid_t child);

/* Closes all descriptors of this process but these, so that who waits for our end sees it, not a helper's. */
void supervisor_let_go(const int *keep, size_t n);

#endif
