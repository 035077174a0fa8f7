#include "capture/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"

enum { STUCK_SECONDS = 3 }; /* for a killed process to end; one that is stuck in a driver may never */

void supervisor_let_go(const int *keep, size_t n)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	unsigned from = 3;

	for (int fd = 0; fd < 3; fd++)
		dup2(nothing, fd);
	for (;;) {
		unsigned next = ~0u;

		for (size_t i = 0; i < n; i++) {
			if ((unsigned)keep[i] >= from && (unsigned)keep[i] < next)
				next = (unsigned)keep[i];
		}
		if (next > from)
			close_range(from, next == ~0u ? next : next - 1, 0);
		if (next == ~0u)
			return;
		from = next + 1;
	}
}

static void kill_children(void)
{
	char path[64];
	int pid;

	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	FILE *children = fopen(path, "r");

	while (children && fscanf(children, "%d", &pid) == 1)
		kill(pid, SIGKILL);
	if (children)
		fclose(children);
}

/* False when no child is left. */
static bool reap_children(pid_t program, int *status, bool *ret_over)
{
	pid_t pid;
	int one;

	while ((pid = waitpid(-1, &one, WNOHANG)) > 0) {
		if (pid != program)
			continue;
		*status = one;
		*ret_over = true;
	}
	return pid == 0;
}

/* As its children die, their children become the supervisor's: killed again and again until there are none. */
static void clear_tree(pid_t program, int *status)
{
	double end = now_steady() + STUCK_SECONDS;
	sigset_t died;
	bool over;

	sigemptyset(&died);
	sigaddset(&died, SIGCHLD);
	kill(-program, SIGKILL);
	for (;;) {
		double left = end - now_steady();

		kill_children();
		if (!reap_children(program, status, &over) || left <= 0)
			return;
		sigtimedwait(&died, NULL, &(struct timespec){(time_t)left, (long)(fmod(left, 1) * 1e9)});
	}
}

static _Noreturn void end_as(int status)
{
	if (WIFSIGNALED(status)) {
		sigset_t one;

		prctl(PR_SET_DUMPABLE, 0); /* a core dump is the program's to make */
		signal(WTERMSIG(status), SIG_DFL);
		sigemptyset(&one);
		sigaddset(&one, WTERMSIG(status));
		sigprocmask(SIG_UNBLOCK, &one, NULL);
		raise(WTERMSIG(status));
	}
	_exit(WEXITSTATUS(status));
}

_Noreturn void supervisor_run(pid_t parent, void (*become)(void *user), void (*failed)(void *user, int why),
			      void *user)
{
	int signo, status = W_EXITCODE(0, SIGKILL);
	bool over = false;
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_PDEATHSIG, SUPERVISOR_AT_ONCE);
	if (getppid() != parent)
		_exit(125);
	pid_t program = fork();

	if (program == 0)
		become(user);
	if (program < 0) {
		failed(user, errno);
		_exit(125);
	}
	supervisor_let_go(NULL, 0);
	sigemptyset(&all);
	sigaddset(&all, SIGCHLD);
	sigaddset(&all, SUPERVISOR_POLITELY);
	sigaddset(&all, SUPERVISOR_AT_ONCE);
	while (!over && sigwait(&all, &signo) == 0 && signo != SUPERVISOR_AT_ONCE) {
		if (signo == SUPERVISOR_POLITELY)
			kill(-program, SIGTERM);
		else
			reap_children(program, &status, &over);
	}
	clear_tree(program, &status);
	end_as(status);
}

void supervisor_reap_soon(pid_t child)
{
	int fd = (int)syscall(SYS_pidfd_open, child, 0);

	poll(&(struct pollfd){fd, POLLIN, 0}, 1, (STUCK_SECONDS + 1) * 1000);
	if (fd >= 0)
		close(fd);
	waitpid(child, NULL, WNOHANG);
}
