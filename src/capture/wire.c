#include "capture/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	FRAME_MAX = 8 << 20,
	HEADER = 4,
	BACKLOG = 128,
};

struct peer {
	struct wire *wire;
	struct peer *next;
	int fd; /* -1: cut off, freed after the callback that did it */
	pid_t pid;
	struct buf in;
};

struct wire {
	struct loop *loop;
	struct wire_events events;
	char *folder, *path;
	int fd;
	struct peer *peers;
	bool full; /* no descriptor was left for who knocks: the socket is not watched until a peer goes */
};

static void acceptable(void *user, int fd, short revents);

/* The socket's folder is ours alone; XDG_RUNTIME_DIR is made for this, and its paths are short. */
static char *private_folder(struct error *e)
{
	const char *bases[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};

	for (size_t i = 0; i < COUNT(bases); i++) {
		if (bases[i] == NULL || bases[i][0] != '/' || strlen(bases[i]) > 80)
			continue;
		char *folder = xasprintf("%s/cuwhy-XXXXXX", bases[i]);

		if (mkdtemp(folder))
			return folder;
		error_set(e, "cannot make a folder in %s: %s; set TMPDIR to one that can be written to", bases[i],
			  strerror(errno));
		free(folder);
	}
	return NULL;
}

static void peer_free(struct peer *p)
{
	buf_done(&p->in);
	free(p);
}

static void cut(struct peer *p)
{
	if (p->fd < 0)
		return;
	loop_fd_remove(p->wire->loop, p->fd);
	close(p->fd);
	p->fd = -1;
}

/* Forgets peers that were cut off. Only between callbacks. */
static void sweep(struct wire *w)
{
	for (struct peer **at = &w->peers; *at;) {
		struct peer *p = *at;

		if (p->fd >= 0) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		w->events.gone(w->events.user, p);
		peer_free(p);
		if (w->full)
			loop_fd(w->loop, w->fd, POLLIN, acceptable, w);
		w->full = false;
	}
}

static uint32_t frame_length(const struct buf *in)
{
	const unsigned char *b = (const unsigned char *)in->data;

	return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static void reject(struct peer *p)
{
	cut(p);
	p->wire->events.broken(p->wire->events.user, p);
}

static void take_frames(struct peer *p)
{
	size_t at = 0;

	while (p->fd >= 0 && p->in.len - at >= HEADER) {
		struct buf rest = {.data = p->in.data + at, .len = p->in.len - at};
		uint32_t len = frame_length(&rest);

		if (len > FRAME_MAX) {
			reject(p);
			return;
		}
		if (rest.len - HEADER < len)
			break;
		json_t *message = json_loadb(rest.data + HEADER, len, 0, NULL);

		at += HEADER + len;
		if (json_is_object(message))
			p->wire->events.message(p->wire->events.user, p, message);
		else
			reject(p);
		json_decref(message);
	}
	buf_drop(&p->in, at);
}

/* Reads once. How much it was: 0 when there is nothing now, or nothing more. */
static size_t take(struct peer *p)
{
	char bytes[64 << 10];
	ssize_t n = p->fd >= 0 ? read(p->fd, bytes, sizeof bytes) : -1;

	if (n > 0) {
		buf_add(&p->in, bytes, (size_t)n);
		take_frames(p);
		return (size_t)n;
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		cut(p);
	return 0;
}

static void readable(void *user, int fd, short revents)
{
	struct peer *p = user;
	struct wire *w = p->wire;

	(void)fd;
	(void)revents;
	take(p);
	sweep(w);
}

/* A process of another user has no business here, whatever the folder's mode says. */
static bool same_user(int fd, pid_t *ret_pid)
{
	struct ucred peer;
	socklen_t len = sizeof peer;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 || (peer.uid != geteuid() && geteuid() != 0))
		return false;
	*ret_pid = peer.pid;
	return true;
}

/* False when nobody waits to be let in, or nobody can be. */
static bool let_in(struct wire *w)
{
	int theirs = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	pid_t pid;

	if (theirs < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			loop_fd_remove(w->loop, w->fd);
			w->full = true;
		}
		return false;
	}
	if (!same_user(theirs, &pid)) {
		close(theirs);
		return true;
	}
	struct peer *p = xcalloc(1, sizeof *p);

	*p = (struct peer){.wire = w, .next = w->peers, .fd = theirs, .pid = pid};
	w->peers = p;
	loop_fd(w->loop, theirs, POLLIN, readable, p);
	return true;
}

static void acceptable(void *user, int fd, short revents)
{
	(void)fd;
	(void)revents;
	let_in(user);
}

/* Somebody may go on talking and knocking meanwhile: the ends are what was there at the start. */
void wire_drain(struct wire *w)
{
	for (int i = 0; i <= BACKLOG && let_in(w); i++)
		;
	for (struct peer *p = w->peers; p; p = p->next) {
		int arrived = 0;

		ioctl(p->fd, FIONREAD, &arrived);
		for (size_t got, left = (size_t)arrived; left > 0 && (got = take(p)) > 0;)
			left -= got < left ? got : left;
	}
	sweep(w);
}

struct wire *wire_open(struct loop *l, const struct wire_events *events, struct error *e)
{
	struct wire *w = xcalloc(1, sizeof *w);
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	w->loop = l;
	w->events = *events;
	w->fd = -1;
	w->folder = private_folder(e);
	if (w->folder) {
		w->path = xasprintf("%s/agent", w->folder);
		strncpy(address.sun_path, w->path, sizeof address.sun_path - 1);
		w->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (w->fd >= 0 && bind(w->fd, (struct sockaddr *)&address, sizeof address) == 0 &&
		    listen(w->fd, BACKLOG) == 0) {
			loop_fd(l, w->fd, POLLIN, acceptable, w);
			return w;
		}
		error_set(e, "cannot listen on %s: %s", w->path, strerror(errno));
	}
	wire_close(w);
	return NULL;
}

void wire_close(struct wire *w)
{
	if (w == NULL)
		return;
	for (struct peer *p = w->peers; p; p = p->next)
		cut(p);
	sweep(w);
	if (w->fd >= 0) {
		loop_fd_remove(w->loop, w->fd);
		close(w->fd);
		unlink(w->path);
	}
	if (w->folder)
		rmdir(w->folder);
	free(w->folder);
	free(w->path);
	free(w);
}

const char *wire_path(const struct wire *w)
{
	return w->path;
}

void wire_send(struct peer *p, const json_t *message)
{
	char *text = json_dumps(message, JSON_COMPACT);
	size_t len = strlen(text);
	struct buf frame = {0};

	for (int i = 0; i < HEADER; i++)
		buf_chr(&frame, (char)(len >> (8 * i) & 0xff));
	buf_add(&frame, text, len);
	/* Commands are a few bytes on an idle socket: what does not fit will never be read. The loop sees the
	 * end of what is shut down here, and cuts it off: the caller may still be using p. */
	if (p->fd >= 0 && send(p->fd, frame.data, frame.len, MSG_NOSIGNAL) != (ssize_t)frame.len)
		shutdown(p->fd, SHUT_RDWR);
	buf_done(&frame);
	free(text);
}

pid_t wire_pid(const struct peer *p)
{
	return p->pid;
}
