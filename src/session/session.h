/*
 * session: one SQLite file that holds everything that happened, written while it happens.
 *
 * Reader and writer share this file so that they cannot drift apart. Output and events share one
 * sequence of ids; an event's facts are JSON in the shape of its record. docs/session.md lists the
 * tables for people with an sqlite3 shell.
 */
#ifndef CUWHY_SESSION_H
#define CUWHY_SESSION_H

#include "facts/event.h"

struct session;

/* Makes a new file (mode 0600); NULL when it cannot be made. */
struct session *session_create(const char *path, struct error *e);
/* Writes what is pending and leaves one plain file. NULL is fine. */
void session_close(struct session *s);

const char *session_path(const struct session *s);

/*
 * Appends; the event is in the file after the next session_commit. After a failure (full disk) the
 * session is lost: this and all later calls return false, the file keeps what it had.
 */
bool session_append(struct session *s, const struct event *ev, struct error *e);
bool session_commit(struct session *s, struct error *e);

/* Opens read-only; refuses what is no session, and a newer schema, with a line that says so. */
struct session *session_open(const char *path, struct error *e);
/*
 * Calls fn for every event in order, the program's output only if asked for; events are borrowed. False
 * when the file is damaged: what was read up to there has been told, and the error says so.
 */
bool session_each(struct session *s, bool output, void (*fn)(void *user, const struct event *ev), void *user,
		  struct error *e);

#endif
