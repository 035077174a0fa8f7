#include "cmd/batch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/tell.h"
#include "diagnose/fault.h"
#include "diagnose/steps.h"

void batch_quiet(struct batch *b)
{
	if (b->shown)
		fputs("\r\033[K", stderr);
	b->shown = false;
}

/* Asked at each event, and a fault does not go away again. */
static bool failed(struct batch *b)
{
	struct fault f;

	if (!b->failed) {
		fault_of(b->model, &f);
		b->failed = strcmp(f.kind, "none") != 0;
		fault_done(&f);
	}
	return b->failed;
}

static void show_step(struct batch *b, const struct step_result *r)
{
	const struct step *s = step_find(r->id);
	size_t number = (size_t)(s - step_table) + 1;

	if (tell_in_place()) {
		batch_quiet(b);
		fprintf(stderr, "cuwhy: step %zu of %zu, %s ...", number, step_count, s->question);
		b->shown = true;
	} else {
		complain("step %zu of %zu: %s", number, step_count, s->question);
	}
}

static void show_progress(struct batch *b, const struct progress *p)
{
	if (!tell_in_place() || p->done == INT_UNKNOWN)
		return;
	batch_quiet(b);
	if (p->total != INT_UNKNOWN && p->total > 0)
		fprintf(stderr, "cuwhy: %" PRId64 " of %" PRId64 " samples looked at (%d %%)", p->done, p->total,
			(int)(100.0 * (double)p->done / (double)p->total));
	else
		fprintf(stderr, "cuwhy: %" PRId64 " samples looked at", p->done);
	b->shown = true;
}

void batch_told(void *user, const struct event *ev)
{
	struct batch *b = user;

	if (ev->kind != EVENT_STEP && ev->kind != EVENT_PROGRESS)
		return;
	if (!b->verbose && !failed(b))
		return;
	if (ev->kind == EVENT_PROGRESS)
		show_progress(b, &ev->as.progress);
	else if (strcmp(ev->as.step.status, "running") == 0)
		show_step(b, &ev->as.step);
	else
		batch_quiet(b);
}

void batch_session_lost(void *user, const char *why)
{
	batch_quiet(user);
	complain("%s; the diagnosis goes on, but the session ends here", why);
}
