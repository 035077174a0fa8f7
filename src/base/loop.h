/*
 * loop: the one poll of the program. File descriptors, timers and signals are callbacks registered
 * with it; nothing else blocks. Callbacks may add and remove anything, themselves included.
 */
#ifndef CUWHY_LOOP_H
#define CUWHY_LOOP_H

#include <poll.h>
#include <stdbool.h>
#include <sys/signalfd.h>

struct loop;

typedef void loop_fd_fn(void *user, int fd, short revents);
typedef void loop_timer_fn(void *user);
typedef void loop_signal_fn(void *user, const struct signalfd_siginfo *info);

/*
 * A reader that is gone is an error of write and an ended child waits to be asked for, whatever we
 * inherited: SIGPIPE is ignored and SIGCHLD is not, from here to the end of the process.
 */
struct loop *loop_new(void);
void loop_free(struct loop *l); /* closes nothing but its own descriptors; restores the signal mask */

/* Watches fd for poll events; a second call for the same fd changes them. fd stays the caller's. */
void loop_fd(struct loop *l, int fd, short events, loop_fd_fn *fn, void *user);
void loop_fd_remove(struct loop *l, int fd);

/* Calls fn once after `seconds`. Returns an id for loop_timer_cancel, never 0. */
int loop_timer(struct loop *l, double seconds, loop_timer_fn *fn, void *user);
void loop_timer_cancel(struct loop *l, int id); /* 0 and ids that have fired are ignored */

/* Blocks the signal for the process and delivers it here. */
void loop_signal(struct loop *l, int signo, loop_signal_fn *fn, void *user);
/* Removes every signal handler that was registered with this user. The signals stay blocked. */
void loop_signals_forget(struct loop *l, const void *user);
/* In a forked child, before exec: the signal mask and dispositions that the process had before loop_new. */
void loop_child_signals(const struct loop *l);

/* Calls fn each time before the loop sleeps, in the order of registration: the place to flush and to draw. */
void loop_before_sleep(struct loop *l, loop_timer_fn *fn, void *user);
/* Removes every such callback that was registered with this user. */
void loop_before_sleep_forget(struct loop *l, const void *user);

/* Runs until done(user) is true; it is asked before each sleep. */
void loop_until(struct loop *l, bool (*done)(void *user), void *user);

#endif
