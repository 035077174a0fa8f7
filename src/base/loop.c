#include "base/loop.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"

struct watch {
	int fd;
	short events;
	loop_fd_fn *fn; /* NULL: removed, swept before the next poll */
	void *user;
};

struct timer {
	int id;
	double at; /* steady clock */
	loop_timer_fn *fn;
	void *user;
};

struct handler {
	int signo;
	loop_signal_fn *fn;
	void *user;
};

struct before_sleep {
	loop_timer_fn *fn;
	void *user;
};

struct loop {
	struct watch *watches;
	size_t nwatches, cap_watches;
	struct timer *timers;
	size_t ntimers, cap_timers;
	struct handler *handlers;
	size_t nhandlers, cap_handlers;
	struct pollfd *polls;
	size_t cap_polls;
	int last_timer;
	int signal_fd; /* -1 until the first loop_signal */
	sigset_t watched, before;
	struct sigaction pipe_before, child_before;
	struct before_sleep *befores;
	size_t nbefores, cap_befores;
};

struct loop *loop_new(void)
{
	struct loop *l = xcalloc(1, sizeof *l);

	l->signal_fd = -1;
	sigemptyset(&l->watched);
	sigprocmask(SIG_SETMASK, NULL, &l->before);
	sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, &l->pipe_before);
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &l->child_before);
	return l;
}

void loop_free(struct loop *l)
{
	if (l == NULL)
		return;
	if (l->signal_fd >= 0)
		close(l->signal_fd);
	sigprocmask(SIG_SETMASK, &l->before, NULL);
	free(l->watches);
	free(l->timers);
	free(l->handlers);
	free(l->befores);
	free(l->polls);
	free(l);
}

void loop_fd(struct loop *l, int fd, short events, loop_fd_fn *fn, void *user)
{
	struct watch w = {fd, events, fn, user};

	for (size_t i = 0; i < l->nwatches; i++) {
		if (l->watches[i].fd == fd && l->watches[i].fn) {
			l->watches[i] = w;
			return;
		}
	}
	l->watches = xgrow(l->watches, &l->cap_watches, l->nwatches + 1, sizeof w);
	l->watches[l->nwatches++] = w;
}

void loop_fd_remove(struct loop *l, int fd)
{
	for (size_t i = 0; i < l->nwatches; i++) {
		if (l->watches[i].fd == fd)
			l->watches[i].fn = NULL;
	}
}

int loop_timer(struct loop *l, double seconds, loop_timer_fn *fn, void *user)
{
	struct timer t = {++l->last_timer, now_steady() + seconds, fn, user};

	l->timers = xgrow(l->timers, &l->cap_timers, l->ntimers + 1, sizeof t);
	l->timers[l->ntimers++] = t;
	return t.id;
}

void loop_timer_cancel(struct loop *l, int id)
{
	for (size_t i = 0; i < l->ntimers; i++) {
		if (l->timers[i].id == id) {
			l->timers[i] = l->timers[--l->ntimers];
			return;
		}
	}
}

static void read_signals(void *user, int fd, short revents)
{
	struct loop *l = user;
	struct signalfd_siginfo info;

	(void)revents;
	while (read(fd, &info, sizeof info) == (ssize_t)sizeof info) {
		for (size_t i = 0; i < l->nhandlers; i++) {
			if (l->handlers[i].signo == (int)info.ssi_signo)
				l->handlers[i].fn(l->handlers[i].user, &info);
		}
	}
}

void loop_signal(struct loop *l, int signo, loop_signal_fn *fn, void *user)
{
	struct handler h = {signo, fn, user};

	l->handlers = xgrow(l->handlers, &l->cap_handlers, l->nhandlers + 1, sizeof h);
	l->handlers[l->nhandlers++] = h;
	sigaddset(&l->watched, signo);
	sigprocmask(SIG_BLOCK, &l->watched, NULL);
	l->signal_fd = signalfd(l->signal_fd, &l->watched, SFD_CLOEXEC | SFD_NONBLOCK);
	loop_fd(l, l->signal_fd, POLLIN, read_signals, l);
}

void loop_signals_forget(struct loop *l, const void *user)
{
	size_t n = 0;

	for (size_t i = 0; i < l->nhandlers; i++) {
		if (l->handlers[i].user != user)
			l->handlers[n++] = l->handlers[i];
	}
	l->nhandlers = n;
}

void loop_child_signals(const struct loop *l)
{
	sigaction(SIGPIPE, &l->pipe_before, NULL);
	sigaction(SIGCHLD, &l->child_before, NULL);
	sigprocmask(SIG_SETMASK, &l->before, NULL);
}

void loop_before_sleep(struct loop *l, loop_timer_fn *fn, void *user)
{
	l->befores = xgrow(l->befores, &l->cap_befores, l->nbefores + 1, sizeof *l->befores);
	l->befores[l->nbefores++] = (struct before_sleep){fn, user};
}

void loop_before_sleep_forget(struct loop *l, const void *user)
{
	size_t n = 0;

	for (size_t i = 0; i < l->nbefores; i++) {
		if (l->befores[i].user != user)
			l->befores[n++] = l->befores[i];
	}
	l->nbefores = n;
}

static void call_before_sleep(const struct loop *l)
{
	for (size_t i = 0; i < l->nbefores; i++)
		l->befores[i].fn(l->befores[i].user);
}

/* Milliseconds until the next timer, rounded up so that it has passed when poll returns; -1: none. */
static int next_timeout(const struct loop *l)
{
	double wait = INFINITY;

	for (size_t i = 0; i < l->ntimers; i++)
		wait = fmin(wait, l->timers[i].at - now_steady());
	if (isinf(wait))
		return -1;
	return wait <= 0 ? 0 : (int)fmin(ceil(wait * 1000), 1e9);
}

static void fire_timers(struct loop *l)
{
	double now = now_steady();

	for (size_t i = 0; i < l->ntimers; i++) {
		struct timer t = l->timers[i];

		if (t.at > now)
			continue;
		l->timers[i] = l->timers[--l->ntimers];
		t.fn(t.user);
		i = (size_t)-1; /* the callback may have changed the array: look again from the start */
	}
}

/* Polls once and calls what is ready. */
static void turn(struct loop *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->nwatches; i++) {
		if (l->watches[i].fn)
			l->watches[n++] = l->watches[i];
	}
	l->nwatches = n;
	l->polls = xgrow(l->polls, &l->cap_polls, n ? n : 1, sizeof *l->polls);
	for (size_t i = 0; i < n; i++)
		l->polls[i] = (struct pollfd){l->watches[i].fd, l->watches[i].events, 0};
	int ready = poll(l->polls, n, next_timeout(l));

	/* Watches are only appended while callbacks run, so the first n keep their places. */
	for (size_t i = 0; ready > 0 && i < n; i++) {
		if (l->polls[i].revents && l->watches[i].fn && l->watches[i].fd == l->polls[i].fd)
			l->watches[i].fn(l->watches[i].user, l->polls[i].fd, l->polls[i].revents);
	}
	fire_timers(l);
}

void loop_until(struct loop *l, bool (*done)(void *user), void *user)
{
	while (!done(user)) {
		call_before_sleep(l);
		turn(l);
	}
	call_before_sleep(l);
}
