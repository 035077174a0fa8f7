/*
 * util: allocation that dies, growable bytes, and errors as values.
 *
 * A debugger that is out of memory cannot help, so the x functions never return NULL: they say so
 * on stderr and end the program with status 125.
 */
#ifndef CUWHY_UTIL_H
#define CUWHY_UTIL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRINTF(a, b) __attribute__((format(printf, a, b)))
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *old, size_t size);
/* Grows an array of `size`-byte elements to hold at least `need`; *cap is in elements. */
void *xgrow(void *old, size_t *cap, size_t need, size_t size);
char *xstrdup(const char *text);                 /* NULL gives NULL; caller frees */
char *xstrndup(const char *bytes, size_t len);   /* caller frees */
char *xasprintf(const char *fmt, ...) PRINTF(1, 2); /* caller frees */

/*
 * Growable bytes. data is NUL-terminated one byte past len (so it can be read as a string), and is
 * never NULL after the first append. A zeroed struct is an empty buffer.
 */
struct buf {
	char *data;
	size_t len;
	size_t cap;
};

void buf_add(struct buf *b, const void *bytes, size_t len);
void buf_str(struct buf *b, const char *text);
void buf_chr(struct buf *b, char c);
void buf_fmt(struct buf *b, const char *fmt, ...) PRINTF(2, 3);
void buf_drop(struct buf *b, size_t len);        /* removes bytes from the front */
char *buf_take(struct buf *b);                   /* caller frees; b is empty again */
void buf_done(struct buf *b);

/*
 * An error: what was tried, on what, why it failed and what the user can do, in one line.
 * Functions that can fail return false and fill the error; the top prints it, once.
 */
struct error {
	char text[768];
};

/* Always false, so that `return error_set(e, ...)` reads well. e may be NULL. */
bool error_set(struct error *e, const char *fmt, ...) PRINTF(2, 3);

/* Does text end in suffix; does it start with prefix. */
bool ends_with(const char *text, const char *suffix);
bool starts_with(const char *text, const char *prefix);

/* Seconds since the epoch, and seconds of the monotonic clock. */
double now_wall(void);
double now_steady(void);

#endif
