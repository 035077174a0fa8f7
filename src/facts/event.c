#include "facts/event.h"

#include <stdlib.h>
#include <string.h>

RECORD(static, rank, FIELD(INT, rank, rank));
RECORD(static, held, FIELD(INT, held, pid), FIELD(STR, held, reason));
RECORD(static, progress, FIELD(INT, progress, done), FIELD(INT, progress, total));

static const struct field no_fields[] = {{0}};
static const struct record empty_record = {sizeof(struct empty), no_fields};

static const struct {
	const char *name;
	const struct record *record;
	bool from_agent;
} kinds[EVENT_KINDS] = {
	[EVENT_RUN] = {"run", &run_record, false},
	[EVENT_ENDED] = {"ended", &ended_record, false},
	[EVENT_OUTPUT] = {"output", NULL, false},
	[EVENT_PROCESS] = {"process", &process_record, true},
	[EVENT_CUDA_ABSENT] = {"cuda_absent", &empty_record, true},
	[EVENT_ASSERTION] = {"assertion", &assertion_record, false},
	[EVENT_FAILURE] = {"failure", &failure_record, false},
	[EVENT_TRACEBACK] = {"traceback", &traceback_record, false},
	[EVENT_RANK] = {"rank", &rank_record, false},
	[EVENT_FINDING] = {"finding", &finding_record, true},
	[EVENT_RAISED] = {"raised", &raised_record, true},
	[EVENT_CHECKED] = {"checked", &checked_record, true},
	[EVENT_OPERAND] = {"operand", &operand_record, true},
	[EVENT_HELD] = {"held", &held_record, true},
	[EVENT_PROGRESS] = {"progress", &progress_record, true},
	[EVENT_SCAN] = {"scan", &scan_record, true},
	[EVENT_STEP] = {"step", &step_result_record, false},
	[EVENT_EXCERPT] = {"excerpt", &excerpt_record, false},
	[EVENT_MACHINE] = {"machine", &machine_record, false},
	[EVENT_NOTE] = {"note", &note_record, true},
};

const char *event_name(enum event_kind kind)
{
	return kinds[kind].name;
}

const struct record *event_record(enum event_kind kind)
{
	return kinds[kind].record;
}

bool event_kind_of(const char *name, enum event_kind *ret_kind)
{
	for (int k = 0; k < EVENT_KINDS; k++) {
		if (strcmp(kinds[k].name, name) == 0) {
			*ret_kind = (enum event_kind)k;
			return true;
		}
	}
	return false;
}

bool event_from_agent(enum event_kind kind)
{
	return kinds[kind].from_agent;
}

bool event_decode(struct event *e, enum event_kind kind, const json_t *json, struct error *error)
{
	*e = (struct event){.kind = kind};
	if (kind == EVENT_OUTPUT)
		return error_set(error, "output is no JSON event");
	return record_decode(kinds[kind].record, json, &e->as, error);
}

void event_done(struct event *e)
{
	if (e->kind == EVENT_OUTPUT)
		free(e->as.output.bytes);
	else
		record_done(kinds[e->kind].record, &e->as);
	memset(&e->as, 0, sizeof e->as);
}
