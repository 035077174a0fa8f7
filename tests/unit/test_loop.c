/* loop: callbacks may change what is watched while they run, signals arrive as events, children get back what was
 * inherited. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/util.h"

struct seen {
	struct loop *loop;
	int reads, timers, signals, sleeps;
	bool done;
};

static bool is_done(void *user)
{
	return ((struct seen *)user)->done;
}

static void on_read(void *user, int fd, short revents)
{
	struct seen *s = user;
	char byte;

	(void)revents;
	assert_int_equal(read(fd, &byte, 1), 1);
	s->reads++;
	loop_fd_remove(s->loop, fd);
	kill(getpid(), SIGUSR1);
}

static void on_signal(void *user, const struct signalfd_siginfo *info)
{
	struct seen *s = user;

	assert_int_equal(info->ssi_signo, SIGUSR1);
	s->signals++;
	s->done = true;
}

static void on_timer(void *user)
{
	struct seen *s = user;

	s->timers++;
}

static void on_sleep(void *user)
{
	((struct seen *)user)->sleeps++;
}

static void events_arrive_and_can_be_taken_back(void **state)
{
	struct seen s = {.loop = loop_new()};
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "xy", 2), 2);
	loop_fd(s.loop, ends[0], POLLIN, on_read, &s);
	loop_signal(s.loop, SIGUSR1, on_signal, &s);
	loop_before_sleep(s.loop, on_sleep, &s);
	int never = loop_timer(s.loop, 0, on_timer, &s);

	loop_timer(s.loop, 0, on_timer, &s);
	loop_timer_cancel(s.loop, never);
	loop_timer_cancel(s.loop, 0);
	loop_until(s.loop, is_done, &s);
	assert_int_equal(s.reads, 1); /* the second byte is still there: its watch was removed */
	assert_int_equal(s.signals, 1);
	assert_int_equal(s.timers, 1);
	assert_true(s.sleeps >= 2);
	loop_free(s.loop);
	close(ends[0]);
	close(ends[1]);
}

static bool handler_is(int signo, void (*handler)(int))
{
	struct sigaction is;

	return sigaction(signo, NULL, &is) == 0 && is.sa_handler == handler;
}

static void a_child_gets_the_signals_that_were_inherited(void **state)
{
	int status;

	(void)state;
	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_DFL);
	struct loop *l = loop_new();

	assert_true(handler_is(SIGCHLD, SIG_DFL));
	assert_true(handler_is(SIGPIPE, SIG_IGN));
	pid_t child = fork();

	if (child == 0) {
		loop_child_signals(l);
		_exit(handler_is(SIGCHLD, SIG_IGN) && handler_is(SIGPIPE, SIG_DFL) ? 7 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 7);
	loop_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_arrive_and_can_be_taken_back),
		cmocka_unit_test(a_child_gets_the_signals_that_were_inherited),
	};

	return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
