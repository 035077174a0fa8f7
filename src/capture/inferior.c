#include "capture/inferior.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "capture/supervisor.h"

struct channel {
	int fd; /* our end; -1 when closed */
	int to; /* where its bytes are passed through, a descriptor of our own; -1: nowhere */
	bool pty;
	size_t step;        /* bytes that `to` takes at once without blocking, when poll says that it takes some */
	struct buf pending; /* read and not yet passed through; fd is not read while there is any */
	size_t late;        /* bytes read since the program ended */
};

struct inferior {
	struct loop *loop;
	struct inferior_events events;
	pid_t pid;   /* the program */
	pid_t child; /* the process that we wait for: the program, or a rerun's supervisor */
	bool apart, exited, told, stopping;
	int status; /* of waitpid */
	struct channel channels[2];
	int kill_timer;
};

enum {
	CHUNK = 64 << 10,
	LATE_MAX = 1 << 20, /* what a pipe may hold, fs.pipe-max-size; what is read after that is a daemon's */
};

static void writable(void *user, int fd, short revents);
static void readable(void *user, int fd, short revents);

static void close_channel(struct inferior *inf, struct channel *c)
{
	if (c->fd < 0)
		return;
	loop_fd_remove(inf->loop, c->fd);
	close(c->fd);
	c->fd = -1;
	if (c->to >= 0) {
		loop_fd_remove(inf->loop, c->to);
		close(c->to);
	}
	c->to = -1;
	buf_done(&c->pending);
}

/* A full destination stops the reading, and so the program, as it would have without us. Without POLLOUT
 * the destination is watched for its reader's end. */
static void watch(struct inferior *inf, struct channel *c)
{
	if (c->pending.len > 0)
		loop_fd_remove(inf->loop, c->fd);
	else
		loop_fd(inf->loop, c->fd, POLLIN, readable, inf);
	if (c->to >= 0)
		loop_fd(inf->loop, c->to, c->pending.len > 0 ? POLLOUT : 0, writable, inf);
}

/* Writes of what is pending as much as the destination takes now. When the reader is gone the channel is
 * closed, so that the program learns it the way it would have; what a full disk refuses is lost. */
static void pass(struct inferior *inf, struct channel *c)
{
	struct pollfd dest = {c->to, POLLOUT, 0};
	size_t done = 0;

	while (done < c->pending.len && poll(&dest, 1, 0) > 0) {
		size_t left = c->pending.len - done;
		ssize_t n = write(c->to, c->pending.data + done, left < c->step ? left : c->step);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n < 0 && (errno == EPIPE || errno == EIO)) {
			close_channel(inf, c);
			return;
		}
		done = n < 0 ? c->pending.len : done + (size_t)n;
	}
	buf_drop(&c->pending, done);
	watch(inf, c);
}

/* Reads once. False when there is nothing now, or nothing more, or no place for it. */
static bool pump(struct inferior *inf, int stream)
{
	struct channel *c = &inf->channels[stream - 1];
	char bytes[CHUNK];

	if (c->fd < 0 || c->pending.len > 0)
		return false;
	ssize_t n = read(c->fd, bytes, sizeof bytes);

	if (n > 0) {
		c->late += inf->exited ? (size_t)n : 0;
		if (c->to >= 0) {
			buf_add(&c->pending, bytes, (size_t)n);
			pass(inf, c);
		}
		inf->events.output(inf->events.user, stream, bytes, (size_t)n);
		return true;
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR)) /* a pty says EIO when all its users are gone */
		close_channel(inf, c);
	return n < 0 && errno == EINTR;
}

/* False when the reader is gone. A full pipe blocks a relay as it would have blocked the daemon. */
static bool write_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno == EAGAIN)
			poll(&(struct pollfd){fd, POLLOUT, 0}, 1, -1);
		else if (n < 0 && errno != EINTR)
			return false;
		else if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
	}
	return true;
}

static _Noreturn void relay(struct channel channels[2])
{
	for (;;) {
		struct pollfd polls[2] = {{channels[0].fd, POLLIN, 0}, {channels[1].fd, POLLIN, 0}};

		if ((polls[0].fd < 0 && polls[1].fd < 0) || (poll(polls, 2, -1) < 0 && errno != EINTR))
			_exit(0);
		for (int i = 0; i < 2; i++) {
			struct channel *c = &channels[i];
			char bytes[4096];

			if (c->fd < 0 || polls[i].revents == 0)
				continue;
			ssize_t n = read(c->fd, bytes, sizeof bytes);

			if (n < 0 && (errno == EAGAIN || errno == EINTR))
				continue;
			if (n <= 0 || !write_all(c->to, bytes, (size_t)n)) {
				close(c->fd);
				close(c->to);
				c->fd = -1;
			}
		}
	}
}

/*
 * A daemon that the program left behind may still hold its output. It must not find a closed pipe
 * that it would not have found without us, so a relay goes on passing its bytes through when we end.
 */
static void leave_relay(struct inferior *inf)
{
	int keep[4];
	size_t n = 0;

	for (int i = 0; i < 2; i++) {
		if (inf->channels[i].fd >= 0 && inf->channels[i].to >= 0) {
			keep[n++] = inf->channels[i].fd;
			keep[n++] = inf->channels[i].to;
		}
	}
	if (n == 0 || fork() != 0)
		return;
	setsid();
	loop_child_signals(inf->loop);
	signal(SIGPIPE, SIG_IGN);
	supervisor_let_go(keep, n);
	relay(inf->channels);
}

static void tell_end(struct inferior *inf)
{
	inf->told = true;
	if (!inf->apart)
		leave_relay(inf);
	for (int i = 0; i < 2; i++)
		close_channel(inf, &inf->channels[i]);
	inf->events.ended(inf->events.user, WIFEXITED(inf->status) ? WEXITSTATUS(inf->status) : -1,
			  WIFSIGNALED(inf->status) ? WTERMSIG(inf->status) : 0);
}

/* Tells the end once the program has ended and what it had printed until then is passed through. */
static void settle(struct inferior *inf)
{
	bool waits = false;

	if (!inf->exited || inf->told)
		return;
	for (int stream = 1; stream <= 2; stream++) {
		struct channel *c = &inf->channels[stream - 1];

		while (c->late < LATE_MAX && pump(inf, stream))
			;
		waits |= c->fd >= 0 && c->pending.len > 0;
	}
	if (!waits)
		tell_end(inf);
}

static void reap(void *user, const struct signalfd_siginfo *info)
{
	struct inferior *inf = user;
	int status;

	(void)info;
	if (inf->exited || waitpid(inf->child, &status, WNOHANG) != inf->child)
		return;
	inf->exited = true;
	inf->status = status;
	settle(inf);
}

static void readable(void *user, int fd, short revents)
{
	struct inferior *inf = user;

	(void)revents;
	for (int i = 0; i < 2; i++) {
		if (inf->channels[i].fd == fd)
			pump(inf, i + 1);
	}
	settle(inf);
}

static void writable(void *user, int fd, short revents)
{
	struct inferior *inf = user;

	for (int i = 0; i < 2; i++) {
		struct channel *c = &inf->channels[i];

		if (c->to != fd || c->fd < 0)
			continue;
		if (c->pending.len > 0)
			pass(inf, c);
		else if (revents & (POLLERR | POLLHUP))
			close_channel(inf, c);
	}
	settle(inf);
}

/* In a terminal SIGINT and the like reach the program from the kernel; only what was sent to us alone
 * is passed on. */
static void forward(void *user, const struct signalfd_siginfo *info)
{
	struct inferior *inf = user;

	if (!inf->apart && !inf->exited && info->ssi_code <= 0)
		kill(inf->pid, (int)info->ssi_signo);
}

/* A signal that ends is passed on; when the program has ended already, the reader is not waited for. */
static void forward_end(void *user, const struct signalfd_siginfo *info)
{
	struct inferior *inf = user;

	forward(user, info);
	if (!inf->apart && inf->exited && !inf->told)
		tell_end(inf);
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

/*
 * A descriptor of our own for the destination. The inherited one is shared with whoever started us and so
 * may not be made non-blocking; a terminal can be opened anew (a pty's master cannot: that makes another).
 */
static int own_end(int to)
{
	char path[64];
	int number, fd = -1;

	if (isatty(to) && ioctl(to, TIOCGPTN, &number) != 0) {
		snprintf(path, sizeof path, "/proc/self/fd/%d", to);
		fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	}
	return fd >= 0 ? fd : fcntl(to, F_DUPFD_CLOEXEC, 3);
}

/* Opens our end and the program's end. The pty does not touch bytes: the real terminal will. */
static bool open_channel(struct channel *c, int to, int *ret_theirs, struct error *e)
{
	bool pty = to >= 0 && isatty(to);
	struct stat st;
	int ends[2];

	*c = (struct channel){.fd = -1, .to = -1, .pty = pty};
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
	if (to >= 0)
		c->to = own_end(to);
	/* POSIX's promise for pipes: poll's POLLOUT means room for PIPE_BUF bytes. */
	c->step = to >= 0 && fstat(to, &st) == 0 && S_ISREG(st.st_mode) ? CHUNK : PIPE_BUF;
	return true;
}

static void tell(int report, int number)
{
	if (write(report, &number, sizeof number) != sizeof number)
		_exit(125);
}

/* What a forked process needs to become the program. */
struct birth {
	const struct inferior *inf;
	const struct inferior_spec *spec;
	int theirs[2]; /* its stdout and stderr */
	int report;    /* where its pid is told, and errno when it could not be */
};

static void stillborn(void *user, int why)
{
	const struct birth *b = user;

	tell(b->report, -1);
	tell(b->report, why);
}

/* The program's side of fork. Tells its pid; ends by exec, or by telling errno. */
static void become(void *user)
{
	const struct birth *b = user;
	const struct inferior_spec *spec = b->spec;

	tell(b->report, getpid());
	loop_child_signals(b->inf->loop);
	if (spec->apart) {
		int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

		setsid();
		dup2(nothing, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* should its supervisor be killed */
	}
	dup2(b->theirs[0], 1);
	dup2(b->theirs[1], 2);
	for (size_t i = 0; spec->env && i < spec->env->n; i++) {
		if (strchr(spec->env->v[i], '='))
			putenv(spec->env->v[i]);
		else
			unsetenv(spec->env->v[i]);
	}
	if (spec->cwd < 0 || fchdir(spec->cwd) == 0)
		execvp(spec->argv[0], spec->argv);
	tell(b->report, errno);
	_exit(127);
}

static const struct {
	int signo;
	loop_signal_fn *fn;
} handled[] = {
	{SIGCHLD, reap},       {SIGWINCH, resize},     {SIGINT, forward_end}, {SIGTERM, forward_end},
	{SIGHUP, forward_end}, {SIGQUIT, forward_end}, {SIGUSR1, forward},    {SIGUSR2, forward},
	{SIGCONT, forward},    {SIGALRM, forward},
};

static bool launch(struct inferior *inf, const struct inferior_spec *spec, int *ret_errno, struct error *e)
{
	struct birth birth = {inf, spec, {-1, -1}, -1};
	int report[2] = {-1, -1}, why = 0;
	pid_t us = getpid();
	bool ok = true;

	for (int i = 0; ok && i < 2; i++) {
		int to = spec->apart ? -1 : i == 0 ? spec->stdout_to : 2;

		ok = open_channel(&inf->channels[i], to, &birth.theirs[i], e);
	}
	if (ok && pipe2(report, O_CLOEXEC) != 0)
		ok = error_set(e, "cannot make a pipe: %s", strerror(errno));
	birth.report = report[1];
	if (ok && (inf->child = fork()) < 0)
		ok = error_set(e, "cannot start a process: %s", strerror(errno));
	if (ok && inf->child == 0) {
		if (spec->apart)
			supervisor_run(us, become, stillborn, &birth);
		become(&birth);
	}
	for (int i = 0; i < 2; i++) {
		if (birth.theirs[i] >= 0)
			close(birth.theirs[i]);
	}
	if (report[1] >= 0)
		close(report[1]);
	/* exec closes the pipe: end of file after the pid means that the program runs, more is errno. */
	if (ok && read(report[0], &inf->pid, sizeof inf->pid) != sizeof inf->pid)
		ok = error_set(e, "%s: its process was killed before it could start", spec->argv[0]);
	if (ok && read(report[0], &why, sizeof why) == sizeof why) {
		*ret_errno = why;
		ok = false;
	}
	if (!ok && inf->child > 0) {
		supervisor_reap_soon(inf->child);
		inf->child = -1;
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
	inf->pid = inf->child = -1;
	for (int i = 0; i < 2; i++)
		inf->channels[i].fd = -1;
	for (size_t i = 0; i < COUNT(handled); i++)
		loop_signal(l, handled[i].signo, handled[i].fn, inf);
	if (launch(inf, spec, &why, e)) {
		for (int i = 0; i < 2; i++)
			watch(inf, &inf->channels[i]);
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
	if (inf->apart && inf->child > 0 && !inf->exited) {
		kill(inf->child, SUPERVISOR_AT_ONCE);
		supervisor_reap_soon(inf->child);
	}
	free(inf);
}

void inferior_drain(struct inferior *inf)
{
	for (int stream = 1; stream <= 2; stream++) {
		for (size_t read = 0; read < LATE_MAX && pump(inf, stream); read += CHUNK)
			;
	}
}

int inferior_pid(const struct inferior *inf)
{
	return inf->pid;
}

static void grace_over(void *user)
{
	struct inferior *inf = user;

	inf->kill_timer = 0;
	if (!inf->exited)
		kill(inf->child, SUPERVISOR_AT_ONCE);
}

void inferior_stop(struct inferior *inf, double grace)
{
	if (inf->exited || inf->stopping)
		return;
	inf->stopping = true;
	kill(inf->child, SUPERVISOR_POLITELY);
	inf->kill_timer = loop_timer(inf->loop, grace, grace_over, inf);
}
