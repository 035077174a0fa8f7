/*
 * tell: prints a report as the options ask: text or another format on a stream, and JSON into a file.
 */
#ifndef CUWHY_TELL_H
#define CUWHY_TELL_H

#include <stdio.h>

#include "cmd/cmd.h"
#include "facts/model.h"

/* Writes the JSON that --json asks for; true when it did not ask. `on` is the stream for "-". */
bool tell_json(const struct options *o, const struct model *m, const char *session, FILE *on);

/* The report in --format on the stream; colour where the options and the terminal allow it. False when it
 * could not be written. */
bool tell_text(const struct options *o, const struct model *m, const char *session, FILE *on);

/* May a line on stderr be replaced in place: it is a terminal, and not a dumb one. */
bool tell_in_place(void);

/* Both on stdout, for the verbs that only tell; what: the thing that was read, for "nothing found". */
int tell_report(const struct options *o, const struct model *m, const char *session, const char *what);

#endif
