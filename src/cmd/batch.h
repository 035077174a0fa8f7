/*
 * batch: what is said on stderr while a run without a screen goes on: one line a step that takes time.
 * On a terminal the line is replaced in place and gone at the end; a program that ended well gets none.
 */
#ifndef CUWHY_BATCH_H
#define CUWHY_BATCH_H

#include "facts/model.h"

struct batch {
	const struct model *model;
	bool verbose;
	bool shown;  /* a line stands on the terminal */
	bool failed; /* the program is known to have a fault */
};

/* Callbacks of struct live_options; user is the batch. */
void batch_told(void *user, const struct event *ev);
void batch_session_lost(void *user, const char *why);
/* Takes the line off the terminal. */
void batch_quiet(struct batch *b);

#endif
