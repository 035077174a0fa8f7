/*
 * logscan: the bytes that a program prints, read as facts.
 *
 * Streaming and pure: no file descriptor, bounded memory, and the same facts however the bytes are cut into
 * chunks. It knows how CUDA, ROCm, XPU and Triton print a device-side assertion, how every generation of
 * PyTorch words an error, and what Python tracebacks look like in plain logs, rich boxes, IPython,
 * faulthandler's reports, and behind rank prefixes. Repeated assertion lines fold into one assertion with
 * exact counts; how, and what bounds them, is in logscan_fold.c and logscan_priv.h.
 */
#ifndef CUWHY_LOGSCAN_H
#define CUWHY_LOGSCAN_H

#include "facts/facts.h"

struct logscan;

/*
 * Where facts go. Records are borrowed for the call. An assertion is told when its first line is
 * read, and again from logscan_flush whenever its counts have grown; its id tells which one it is.
 * What a form does not print is unknown: ROCm and interleaved lines have no blocks and threads; XPU has
 * no blocks (its threads are distinct global ids). A failure is told up to three lines after it was
 * read, since its warning ("asynchronously reported") comes below it. The very same failure, traceback
 * or rank is told once.
 * rank is told when text outside any other fact names the failing rank (a launcher's summary).
 */
struct logscan_sink {
	void *user;
	void (*assertion)(void *user, const struct assertion *a);
	void (*failure)(void *user, const struct failure *f);
	void (*traceback)(void *user, const struct traceback *t);
	void (*rank)(void *user, int64_t rank);
};

enum { LOGSCAN_STREAMS = 2 }; /* stdout, stderr: lines of one never mix with the other's */

struct logscan *logscan_new(const struct logscan_sink *sink); /* sink is copied */
void logscan_free(struct logscan *s);

void logscan_feed(struct logscan *s, int stream, const char *bytes, size_t len);
/* Tells the assertions whose counts have grown. Cheap when nothing has. */
void logscan_flush(struct logscan *s);
/* No more bytes: unfinished lines and tracebacks are told, then everything is flushed. */
void logscan_finish(struct logscan *s);

#endif
