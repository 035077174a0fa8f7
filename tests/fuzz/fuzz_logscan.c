/*
 * Any bytes, cut anywhere, must leave logscan unharmed, its facts well formed (valid UTF-8, sets within
 * their bounds), and the same however the bytes are cut.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "capture/logscan.h"

static void add(struct buf *all, const struct record *r, const void *fact)
{
	json_t *json = record_encode(r, fact, true);
	char *text = json_dumps(json, JSON_COMPACT);

	assert(text != NULL);
	buf_str(all, text);
	free(text);
	json_decref(json);
}

static void on_assertion(void *user, const struct assertion *a)
{
	assert(a->count > 0 && a->pairs.n % 6 == 0 && a->form != NULL);
	assert(a->threads == INT_UNKNOWN || a->threads <= a->count);
	assert(a->blocks == INT_UNKNOWN || (a->blocks <= a->threads && (size_t)a->threads * 6 >= a->pairs.n));
	add(user, &assertion_record, a);
}

static void on_failure(void *user, const struct failure *f)
{
	assert(f->text != NULL);
	add(user, &failure_record, f);
}

static void on_traceback(void *user, const struct traceback *t)
{
	add(user, &traceback_record, t);
}

static void on_rank(void *user, int64_t rank)
{
	buf_fmt(user, "%lld", (long long)rank);
}

/* turns: chunks go to one stream and the other */
static char *facts_of(const char *bytes, size_t len, size_t chunk, bool turns)
{
	struct buf all = {0};
	struct logscan_sink sink = {&all, on_assertion, on_failure, on_traceback, on_rank};
	struct logscan *s = logscan_new(&sink);

	for (size_t at = 0; at < len; at += chunk)
		logscan_feed(s, turns ? (int)(at / chunk % LOGSCAN_STREAMS) : 0, bytes + at,
			len - at < chunk ? len - at : chunk);
	logscan_finish(s);
	logscan_free(s);
	return buf_take(&all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	char *whole = facts_of(bytes, size, size ? size : 1, false);
	char *cut = facts_of(bytes, size, 1 + (size ? *data % 61u : 0), false);

	assert(strcmp(whole, cut) == 0);
	free(whole);
	free(cut);
	free(facts_of(bytes, size, 977, true));
	return 0;
}
