/*
 * wire: framed JSON between cuwhy and the agents in the inferior's processes (docs/agent.md).
 *
 * cuwhy listens on a unix socket in a private folder; every peer is one process of the inferior. This is
 * the one door for its bytes: length before read, a bound on everything, and a peer that breaks the rules
 * is cut off.
 */
#ifndef CUWHY_WIRE_H
#define CUWHY_WIRE_H

#include <jansson.h>
#include <sys/types.h>

#include "base/loop.h"
#include "base/util.h"

struct wire;
struct peer;

struct wire_events {
	void *user;
	void (*message)(void *user, struct peer *p, const json_t *message); /* an object, borrowed */
	void (*broken)(void *user, struct peer *p); /* it broke the rules and is not listened to any more */
	void (*gone)(void *user, struct peer *p);   /* the last word about p */
};

struct wire *wire_open(struct loop *l, const struct wire_events *events, struct error *e);
void wire_close(struct wire *w); /* peers see the end of file; the socket and its folder are removed */

/* Takes what has arrived by now, without waiting: what an ended process said last. */
void wire_drain(struct wire *w);

const char *wire_path(const struct wire *w);
void wire_send(struct peer *p, const json_t *message); /* never blocks; a full socket cuts the peer off */
pid_t wire_pid(const struct peer *p); /* of its process, as the kernel says */

#endif
