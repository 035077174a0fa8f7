/*
 * event: the one sum type that everything is made of.
 *
 * Whatever happens is an event; whatever is shown is a fold of events (model.h). A kind is one row of
 * the table in event.c: its name on the wire and in the session, and the record it carries.
 */
#ifndef CUWHY_EVENT_H
#define CUWHY_EVENT_H

#include "facts/facts.h"

enum event_kind {
	EVENT_RUN,        /* a run of the inferior starts; run 0 is the user's own (or the log) */
	EVENT_ENDED,      /* it ended, or is held at its end */
	EVENT_OUTPUT,     /* bytes that it printed */
	EVENT_PROCESS,
	EVENT_CUDA_ABSENT, /* the program asked whether CUDA is there and was truthfully told no */
	EVENT_ASSERTION,
	EVENT_FAILURE,
	EVENT_TRACEBACK,
	EVENT_RANK,
	EVENT_FINDING,
	EVENT_RAISED,
	EVENT_CHECKED,
	EVENT_OPERAND,
	EVENT_HELD,
	EVENT_PROGRESS,
	EVENT_SCAN,
	EVENT_STEP,
	EVENT_EXCERPT, /* source lines around a place that matters */
	EVENT_MACHINE,
	EVENT_NOTE,
	EVENT_KINDS
};

struct output {
	int stream; /* 1 stdout, 2 stderr */
	char *bytes;
	size_t len;
};

struct rank {
	int64_t rank;
};

struct held {
	int64_t pid;
	char *reason; /* exception, finding, exit */
};

struct progress {
	int64_t done, total;
};

struct empty {
	char unused;
};

struct event {
	int64_t id;  /* 1, 2, 3 ... within the session */
	double time; /* seconds since the epoch */
	int run;     /* ordinal of the run it belongs to */
	enum event_kind kind;
	union {
		struct run run;
		struct ended ended;
		struct output output;
		struct process process;
		struct empty empty;
		struct assertion assertion;
		struct failure failure;
		struct traceback traceback;
		struct rank rank;
		struct finding finding;
		struct raised raised;
		struct checked checked;
		struct operand operand;
		struct held held;
		struct progress progress;
		struct scan scan;
		struct step_result step;
		struct excerpt excerpt;
		struct machine machine;
		struct note note;
	} as;
};

const char *event_name(enum event_kind kind);
/* NULL for EVENT_OUTPUT, which is bytes. */
const struct record *event_record(enum event_kind kind);
/* False when no kind has that name. */
bool event_kind_of(const char *name, enum event_kind *ret_kind);
/* Kinds that the agent may send; the others are cuwhy's own to make. */
bool event_from_agent(enum event_kind kind);

/* Fills e->as from JSON; id, time and run are the caller's. The event owns what it holds. */
bool event_decode(struct event *e, enum event_kind kind, const json_t *json, struct error *error);
void event_done(struct event *e);

#endif
