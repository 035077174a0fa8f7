#include "diagnose/walk.h"

#include <string.h>

static bool has(const struct strs *ids, const char *id)
{
	for (size_t i = 0; i < ids->n; i++) {
		if (strcmp(ids->v[i], id) == 0)
			return true;
	}
	return false;
}

static void tell(struct live *v, const struct step *s, enum step_status status, struct buf *finding, double seconds)
{
	struct event ev = {.kind = EVENT_STEP};

	record_init(&step_result_record, &ev.as);
	ev.as.step = (struct step_result){xstrdup(s->id), xstrdup(step_status_name(status)), buf_take(finding), seconds};
	live_emit(v, &ev);
}

/* Fetches the step's facts. False with the reason when that failed. */
static bool perform(struct live *v, const struct step *s, double limit, struct error *e)
{
	switch (s->way) {
	case STEP_READ:
		return true;
	case STEP_CPU:
		return live_rerun(v, LIVE_RERUN_CPU, limit, e);
	case STEP_BLOCKING:
		return live_rerun(v, LIVE_RERUN_BLOCKING, limit, e);
	case STEP_SCAN:
		return live_scan(v, limit, e);
	}
	return true;
}

void walk_step(struct live *v, const struct model *m, const struct step *s, const struct walk_options *o)
{
	double started = now_steady();
	struct buf finding = {0};
	struct error e = {{0}};
	enum step_status status = STEP_SKIPPED;

	if ((o->only->n && !has(o->only, s->id)) || has(o->not, s->id)) {
		buf_str(&finding, "not asked for");
	} else if (live_interrupted(v)) {
		buf_str(&finding, "interrupted");
	} else if (!s->needless(m, &finding)) {
		if (s->way != STEP_READ)
			tell(v, s, STEP_RUNNING, &(struct buf){0}, 0);
		if (perform(v, s, o->limit(o->user, s), &e)) {
			status = s->judge(m, &finding);
		} else {
			status = STEP_FAILED;
			buf_str(&finding, e.text);
		}
	}
	tell(v, s, status, &finding, s->way == STEP_READ ? 0 : now_steady() - started);
}

void walk_all(struct live *v, const struct model *m, const struct walk_options *o)
{
	for (size_t i = 0; i < step_count; i++)
		walk_step(v, m, &step_table[i], o);
}
