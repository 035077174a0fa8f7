/* loop: callbacks may change what is watched while they run, and signals arrive as events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_arrive_and_can_be_taken_back),
	};

	return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
