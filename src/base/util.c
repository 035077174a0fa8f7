#include "base/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void *alive(void *p)
{
	if (p == NULL) {
		fputs("cuwhy: out of memory\n", stderr);
		exit(125);
	}
	return p;
}

void *xmalloc(size_t size)
{
	return alive(malloc(size ? size : 1));
}

void *xcalloc(size_t count, size_t size)
{
	return alive(calloc(count ? count : 1, size ? size : 1));
}

void *xrealloc(void *old, size_t size)
{
	return alive(realloc(old, size ? size : 1));
}

void *xgrow(void *old, size_t *cap, size_t need, size_t size)
{
	if (need <= *cap)
		return old;
	size_t want = *cap ? *cap : 8;

	while (want < need)
		want = want > SIZE_MAX / 2 ? need : want * 2;
	if (want > SIZE_MAX / size)
		alive(NULL);
	*cap = want;
	return xrealloc(old, want * size);
}

char *xstrdup(const char *text)
{
	return text ? alive(strdup(text)) : NULL;
}

char *xstrndup(const char *bytes, size_t len)
{
	char *copy = xmalloc(len + 1);

	if (len)
		memcpy(copy, bytes, len);
	copy[len] = '\0';
	return copy;
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	int len = vasprintf(&text, fmt, ap);
	va_end(ap);
	return alive(len < 0 ? NULL : text);
}

void buf_add(struct buf *b, const void *bytes, size_t len)
{
	b->data = xgrow(b->data, &b->cap, b->len + len + 1, 1);
	if (len)
		memcpy(b->data + b->len, bytes, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void buf_str(struct buf *b, const char *text)
{
	buf_add(b, text, strlen(text));
}

void buf_chr(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_fmt(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	int len = vasprintf(&text, fmt, ap);
	va_end(ap);
	alive(len < 0 ? NULL : text);
	buf_add(b, text, (size_t)len);
	free(text);
}

void buf_drop(struct buf *b, size_t len)
{
	if (len == 0)
		return;
	memmove(b->data, b->data + len, b->len - len + 1);
	b->len -= len;
}

char *buf_take(struct buf *b)
{
	char *text = b->data ? b->data : xstrdup("");

	*b = (struct buf){0};
	return text;
}

void buf_done(struct buf *b)
{
	free(b->data);
	*b = (struct buf){0};
}

bool error_set(struct error *e, const char *fmt, ...)
{
	va_list ap;

	if (e) {
		va_start(ap, fmt);
		vsnprintf(e->text, sizeof e->text, fmt, ap);
		va_end(ap);
	}
	return false;
}

bool ends_with(const char *text, const char *suffix)
{
	size_t n = strlen(text), m = strlen(suffix);

	return n >= m && memcmp(text + n - m, suffix, m) == 0;
}

bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static double read_clock(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double now_wall(void)
{
	return read_clock(CLOCK_REALTIME);
}

double now_steady(void)
{
	return read_clock(CLOCK_MONOTONIC);
}
