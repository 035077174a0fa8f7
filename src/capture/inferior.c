#include "capture/inferior.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

struct channel {
	int fd;   /* our end; -1 when closed */
	int to;   /* where its bytes are passed through; -1: nowhere */
	bool pty;
};

struct inferior {
	struct loop *loop;
	struct inferior_events events;
	pid_t pid;
	bool apart, exited, told, killing;
	int status; /* of waitpid */
	struct channel channels[2];
	int kill_timer;
	double grace;
};

enum { CHUNK = 64 << 10 };

/* Everything is written or the reader is gone; a full pipe blocks us as it would have blocked them. */
static void write_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno == EAGAIN)
			poll(&(struct pollfd){fd, POLLOUT, 0}, 1, -1);
		else if (n < 0 && errno != EINTR)
			return;
		else if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
	}
}

static void close_channel(struct inferior *inf, struct channel *c)
{
	if (c->fd < 0)
		return;
	loop_fd_remove(inf->loop, c->fd);
	close(c->fd);
	c->fd = -1;
}

/* Reads once. False when there is nothing now, or nothing more. */
static bool pump(struct inferior *inf, int stream)
{
	struct channel *c = &inf->channels[stream - 1];
	char bytes[CHUNK];

	if (c->fd < 0)
		return false;
	ssize_t n = read(c->fd, bytes, sizeof bytes);

	if (n > 0) {
		if (c->to >= 0)
			write_all(c->to, bytes, (size_t)n);
		inf->events.output(inf->events.user, stream, bytes, (size_t)n);
		return true;
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR)) /* a pty says EIO when all its users are gone */
		close_channel(inf, c);
	return n < 0 && errno == EINTR;
}

/* Processes that this file has started, so that strays can be told from them. */
static pid_t started[16];

static void remember(pid_t pid)
{
	for (size_t i = 0; i < COUNT(started); i++) {
		if (started[i] == 0 || kill(started[i], 0) != 0) {
			started[i] = pid;
			return;
		}
	}
}

static bool remembered(pid_t pid)
{
	for (size_t i = 0; i < COUNT(started); i++) {
		if (started[i] == pid)
			return true;
	}
	return false;
}

/* A rerun's daemons have left its process group; as a subreaper we are their parent then. */
static void kill_strays(void)
{
	char path[64];
	long pid;

	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	FILE *children = fopen(path, "r");

	while (children && fscanf(children, "%ld", &pid) == 1) {
		if (!remembered((pid_t)pid) && kill((pid_t)pid, SIGKILL) == 0)
			waitpid((pid_t)pid, NULL, 0);
	}
	if (children)
		fclose(children);
}

/*
 * A daemon that the program left behind may still hold its output. It must not find a closed pipe
 * that it would not have found without us, so a relay goes on passing its bytes through when we end.
 */
static void leave_relay(struct inferior *inf)
{
	bool open = false;

	for (int i = 0; i < 2; i++)
		open |= inf->channels[i].fd >= 0 && inf->channels[i].to >= 0;
	if (!open)
		return;
	pid_t relay = fork();

	if (relay != 0) {
		remember(relay);
		return;
	}
	setsid();
	loop_child_signals(inf->loop);
	/* An agent that is still held must see our end, not this process's. */
	for (int fd = 3; fd < 256; fd++) {
		if (fd != inf->channels[0].fd && fd != inf->channels[1].fd && fd != inf->channels[0].to)
			close(fd);
	}
	for (;;) {
		struct pollfd polls[2];
		bool any = false;

		for (int i = 0; i < 2; i++) {
			polls[i] = (struct pollfd){inf->channels[i].fd, POLLIN, 0};
			any |= inf->channels[i].fd >= 0;
		}
		if (!any || (poll(polls, 2, -1) < 0 && errno != EINTR))
			_exit(0);
		for (int i = 0; i < 2; i++) {
			char bytes[4096];
			struct channel *c = &inf->channels[i];
			ssize_t n = polls[i].revents ? read(c->fd, bytes, sizeof bytes) : -1;

			if (n > 0)
				write_all(c->to, bytes, (size_t)n);
			else if (polls[i].revents && (n == 0 || errno != EAGAIN))
				c->fd = -1;
		}
	}
}

static void kill_all(struct inferior *inf)
{
	if (!inf->apart || inf->pid <= 0)
		return;
	kill(-inf->pid, SIGKILL);
	kill_strays();
}

static void tell_end(struct inferior *inf)
{
	if (inf->told)
		return;
	inf->told = true;
	for (int stream = 1; stream <= 2; stream++) {
		/* What was written before the end is there already; a daemon may write for ever. */
		for (int i = 0; i < 4096 && pump(inf, stream); i++)
			;
	}
	if (inf->apart)
		kill_all(inf);
	else
		leave_relay(inf);
	for (int i = 0; i < 2; i++)
		close_channel(inf, &inf->channels[i]);
	inf->events.ended(inf->events.user, WIFEXITED(inf->status) ? WEXITSTATUS(inf->status) : -1,
			  WIFSIGNALED(inf->status) ? WTERMSIG(inf->status) : 0);
}

static void reap(void *user, const struct signalfd_siginfo *info)
{
	struct inferior *inf = user;
	int status;

	(void)info;
	if (inf->exited || waitpid(inf->pid, &status, WNOHANG) != inf->pid)
		return;
	inf->exited = true;
	inf->status = status;
	tell_end(inf);
}

static void readable(void *user, int fd, short revents)
{
	struct inferior *inf = user;

	(void)revents;
	for (int i = 0; i < 2; i++) {
		if (inf->channels[i].fd == fd)
			pump(inf, i + 1);
	}
}

/* In a terminal SIGINT and the like reach the program from the kernel; only what was sent to us alone
 * is passed on. */
static void forward(void *user, const struct signalfd_siginfo *info)
{
	struct inferior *inf = user;

	if (!inf->apart && info->ssi_code <= 0)
		inferior_signal(inf, (int)info->ssi_signo);
}

static void resize(void *user, const struct signalfd_siginfo *info)
{
	struct inferior *inf = user;
	struct winsize size;

	(void)info;
	for (int i = 0; i < 2; i++) {
		struct channel *c = &inf->channels[i];

		if (c->pty && c->fd >= 0 && ioctl(c->to, TIOCGWINSZ, &size) == 0)
			ioctl(c->fd, TIOCSWINSZ, &size);
	}
}

/* Opens our end and the program's end. The pty does not touch bytes: the real terminal will. */
static bool open_channel(struct channel *c, int to, bool pty, int *ret_theirs, struct error *e)
{
	int ends[2];

	*c = (struct channel){.fd = -1, .to = to, .pty = pty};
	if (!pty) {
		if (pipe2(ends, O_CLOEXEC) != 0)
			return error_set(e, "cannot make a pipe: %s", strerror(errno));
	} else {
		struct termios mode;
		struct winsize size;

		ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
		if (ends[0] < 0 || grantpt(ends[0]) != 0 || unlockpt(ends[0]) != 0 ||
		    (ends[1] = open(ptsname(ends[0]), O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0)
			return error_set(e, "cannot open a pseudo-terminal: %s", strerror(errno));
		if (tcgetattr(ends[1], &mode) == 0) {
			mode.c_oflag &= ~(tcflag_t)OPOST;
			tcsetattr(ends[1], TCSANOW, &mode);
		}
		if (ioctl(to, TIOCGWINSZ, &size) == 0)
			ioctl(ends[1], TIOCSWINSZ, &size);
	}
	c->fd = ends[0];
	*ret_theirs = ends[1];
	fcntl(c->fd, F_SETFL, O_NONBLOCK);
	return true;
}

/* The child's side of fork. Ends by exec, or by writing errno into `report`. */
static void become(const struct inferior *inf, const struct inferior_spec *spec, const int theirs[2], int report)
{
	loop_child_signals(inf->loop);
	signal(SIGPIPE, SIG_DFL);
	if (spec->apart) {
		int nothing = open("/dev/null", O_RDONLY);

		setsid();
		dup2(nothing, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a rerun never outlives us */
	}
	dup2(theirs[0], 1);
	dup2(theirs[1], 2);
	for (size_t i = 0; spec->env && i < spec->env->n; i++) {
		if (strchr(spec->env->v[i], '='))
			putenv(spec->env->v[i]);
		else
			unsetenv(spec->env->v[i]);
	}
	if (spec->cwd < 0 || fchdir(spec->cwd) == 0)
		execvp(spec->argv[0], spec->argv);
	int why = errno;

	if (write(report, &why, sizeof why) != sizeof why)
		_exit(125);
	_exit(127);
}

static const struct {
	int signo;
	loop_signal_fn *fn;
} handled[] = {
	{SIGCHLD, reap},    {SIGWINCH, resize},  {SIGINT, forward},  {SIGTERM, forward},
	{SIGHUP, forward},  {SIGQUIT, forward},  {SIGUSR1, forward}, {SIGUSR2, forward},
	{SIGCONT, forward}, {SIGALRM, forward},
};

static bool launch(struct inferior *inf, const struct inferior_spec *spec, int *ret_errno, struct error *e)
{
	int theirs[2] = {-1, -1}, report[2] = {-1, -1}, why = 0;
	bool ok = true;

	for (int i = 0; ok && i < 2; i++) {
		int to = spec->apart ? -1 : i == 0 ? spec->stdout_to : 2;

		ok = open_channel(&inf->channels[i], to, to >= 0 && isatty(to), &theirs[i], e);
	}
	if (ok && pipe2(report, O_CLOEXEC) != 0)
		ok = error_set(e, "cannot make a pipe: %s", strerror(errno));
	if (spec->apart)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (ok && (inf->pid = fork()) < 0)
		ok = error_set(e, "cannot start a process: %s", strerror(errno));
	if (ok && inf->pid == 0)
		become(inf, spec, theirs, report[1]);
	if (ok)
		remember(inf->pid);
	for (int i = 0; i < 2; i++) {
		if (theirs[i] >= 0)
			close(theirs[i]);
	}
	if (report[1] >= 0)
		close(report[1]);
	/* exec closes the pipe: end of file means that the program runs, bytes are errno. */
	if (ok && read(report[0], &why, sizeof why) == sizeof why) {
		waitpid(inf->pid, NULL, 0);
		inf->pid = -1;
		*ret_errno = why;
		ok = false;
	}
	if (report[0] >= 0)
		close(report[0]);
	return ok;
}

struct inferior *inferior_start(struct loop *l, const struct inferior_spec *spec,
				const struct inferior_events *events, int *ret_status, struct error *e)
{
	struct inferior *inf = xcalloc(1, sizeof *inf);
	int why = 0;

	inf->loop = l;
	inf->events = *events;
	inf->apart = spec->apart;
	inf->pid = -1;
	for (int i = 0; i < 2; i++)
		inf->channels[i].fd = -1;
	for (size_t i = 0; i < COUNT(handled); i++)
		loop_signal(l, handled[i].signo, handled[i].fn, inf);
	if (launch(inf, spec, &why, e)) {
		for (int i = 0; i < 2; i++)
			loop_fd(l, inf->channels[i].fd, POLLIN, readable, inf);
		return inf;
	}
	*ret_status = why == 0 ? 125 : why == ENOENT || why == ENOTDIR ? 127 : 126;
	if (*ret_status == 127)
		error_set(e, "%s: command not found; check its spelling and PATH", spec->argv[0]);
	else if (*ret_status == 126)
		error_set(e, "%s: cannot be run: %s", spec->argv[0], strerror(why));
	inferior_free(inf);
	return NULL;
}

void inferior_free(struct inferior *inf)
{
	if (inf == NULL)
		return;
	loop_timer_cancel(inf->loop, inf->kill_timer);
	for (int i = 0; i < 2; i++)
		close_channel(inf, &inf->channels[i]);
	loop_signals_forget(inf->loop, inf);
	if (inf->apart && inf->pid > 0) {
		kill_all(inf);
		if (!inf->exited)
			waitpid(inf->pid, NULL, 0);
	}
	free(inf);
}

int inferior_pid(const struct inferior *inf)
{
	return inf->pid;
}

void inferior_signal(struct inferior *inf, int signo)
{
	if (!inf->exited)
		kill(inf->pid, signo);
}

static void grace_over(void *user)
{
	struct inferior *inf = user;

	inf->kill_timer = 0;
	kill_all(inf);
}

void inferior_stop(struct inferior *inf, double grace)
{
	if (inf->exited || inf->killing)
		return;
	inf->killing = true;
	kill(-inf->pid, SIGTERM);
	inf->kill_timer = loop_timer(inf->loop, grace, grace_over, inf);
}
