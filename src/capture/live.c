#include "capture/live.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/inferior.h"
#include "capture/launch.h"
#include "capture/logscan.h"
#include "capture/wire.h"

enum {
	HOLD_SECONDS = 3600, /* a held process lets go by itself after this, should we never answer */
	STOP_GRACE = 3,
	SCAN_GRACE = 5,     /* for the answer of a process that keeps the limit itself */
	RELEASE_GRACE = 3,  /* for a process that gave no answer to go on by itself */
	TERM_GRACE = 10,    /* for it to end after SIGTERM */
	RERUN_OUTPUT_MAX = 64 << 20,
};

/* A process that waits for commands after a fault. */
struct holding {
	struct peer *peer;
	int64_t pid;
};

/* One run of the inferior that is still going on, or held. */
struct going {
	struct live *live;
	int number; /* of the run in the model */
	const char *name;
	struct inferior *inferior;
	struct wire *wire; /* NULL when no socket could be made: the log alone must do */
	struct logscan *scan;
	struct holding *holdings;
	size_t nholdings, cap_holdings;
	bool ended, releasing;
	const char *stopped; /* why we ended it */
	size_t output;
	int status, signal;
	double started;
	int limit_timer;
	struct peer *asked; /* to scan, and did not come back yet */
	bool scanned, given_up; /* it answered in time; an answer would be too late */
	bool terminated;        /* it got SIGTERM for not coming back */
	int stuck_timer;
};

struct live {
	struct loop *loop;
	struct model *model;
	struct live_options options;
	int64_t last_id;
	struct going *main, *rerun; /* NULL until started */
	int nruns;
	int cwd;
	bool session_lost, interrupted;
};

void live_emit(struct live *v, struct event *ev)
{
	struct error e = {{0}};

	ev->id = ++v->last_id;
	ev->time = now_wall();
	if (v->options.session && !v->session_lost && !session_append(v->options.session, ev, &e)) {
		v->session_lost = true;
		if (v->options.session_lost)
			v->options.session_lost(v->options.user, e.text);
	}
	model_fold(v->model, ev);
	if (v->options.told)
		v->options.told(v->options.user, ev);
	event_done(ev);
}

static void commit(void *user)
{
	struct live *v = user;
	struct error e = {{0}};

	if (v->options.session && !v->session_lost && !session_commit(v->options.session, &e)) {
		v->session_lost = true;
		if (v->options.session_lost)
			v->options.session_lost(v->options.user, e.text);
	}
}

/* Takes text. */
static void emit_note(struct going *g, char *text)
{
	struct event ev = {.kind = EVENT_NOTE, .run = g->number, .as.note.text = text};

	live_emit(g->live, &ev);
}

/* While the user's own program runs, Ctrl-C is the program's; later it stops the diagnosis. */
static void interrupt(void *user, const struct signalfd_siginfo *info)
{
	struct live *v = user;

	(void)info;
	if (v->main && (v->main->ended || v->main->nholdings || v->rerun))
		v->interrupted = true;
}

static const int interrupts[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

struct live *live_new(struct loop *l, struct model *m, const struct live_options *o)
{
	struct live *v = xcalloc(1, sizeof *v);

	v->loop = l;
	v->model = m;
	v->options = *o;
	v->cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < COUNT(interrupts); i++) {
		struct sigaction inherited;

		/* nohup, and a shell's background jobs, want it to be ignored. */
		if (sigaction(interrupts[i], NULL, &inherited) == 0 && inherited.sa_handler != SIG_IGN)
			loop_signal(l, interrupts[i], interrupt, v);
	}
	loop_before_sleep(l, commit, v);
	return v;
}

static void let_go(struct peer *p)
{
	json_t *command = json_pack("{s:s}", "do", "release");

	wire_send(p, command);
	json_decref(command);
}

static void release(struct going *g)
{
	for (size_t i = 0; i < g->nholdings; i++)
		let_go(g->holdings[i].peer);
	g->nholdings = 0;
	g->releasing = true;
}

static void going_free(struct going *g)
{
	if (g == NULL)
		return;
	loop_timer_cancel(g->live->loop, g->limit_timer);
	loop_timer_cancel(g->live->loop, g->stuck_timer);
	release(g);
	inferior_free(g->inferior);
	wire_close(g->wire);
	logscan_free(g->scan);
	free(g->holdings);
	free(g);
}

void live_free(struct live *v)
{
	if (v == NULL)
		return;
	going_free(v->rerun);
	going_free(v->main);
	loop_signals_forget(v->loop, v);
	loop_before_sleep_forget(v->loop, v);
	if (v->cwd >= 0)
		close(v->cwd);
	free(v);
}

/* logscan's facts become events of the run. */

static void emit_copy(struct going *g, enum event_kind kind, const void *fact)
{
	struct event ev = {.kind = kind, .run = g->number};

	record_copy(event_record(kind), &ev.as, fact);
	live_emit(g->live, &ev);
}

static void on_assertion(void *user, const struct assertion *a)
{
	emit_copy(user, EVENT_ASSERTION, a);
}

static void on_failure(void *user, const struct failure *f)
{
	emit_copy(user, EVENT_FAILURE, f);
}

static void on_traceback(void *user, const struct traceback *t)
{
	emit_copy(user, EVENT_TRACEBACK, t);
}

static void on_rank(void *user, int64_t rank)
{
	struct event ev = {.kind = EVENT_RANK, .run = ((struct going *)user)->number, .as.rank.rank = rank};

	live_emit(((struct going *)user)->live, &ev);
}

/* The inferior's output and end. */

static void stop(struct going *g, const char *why)
{
	if (g->stopped == NULL)
		g->stopped = why;
	inferior_stop(g->inferior, STOP_GRACE);
}

static void on_output(void *user, int stream, const char *bytes, size_t len)
{
	struct going *g = user;

	if (g != g->live->main && len > RERUN_OUTPUT_MAX - g->output) {
		len = RERUN_OUTPUT_MAX - g->output;
		stop(g, "it printed more than 64 MiB");
	}
	if (len == 0)
		return;
	struct event ev = {.kind = EVENT_OUTPUT, .run = g->number,
			   .as.output = {stream, xstrndup(bytes, len), len}};

	live_emit(g->live, &ev);
	logscan_feed(g->scan, stream - 1, bytes, len);
	g->output += len;
}

static void emit_end(struct going *g)
{
	struct event ev = {.kind = EVENT_ENDED, .run = g->number};

	record_init(&ended_record, &ev.as);
	ev.as.ended.name = xstrdup(g->name);
	if (g->ended && g->signal)
		ev.as.ended.signal = g->signal;
	else if (g->ended)
		ev.as.ended.exit_status = g->status;
	ev.as.ended.seconds = now_steady() - g->started;
	ev.as.ended.stopped = xstrdup(g->stopped);
	live_emit(g->live, &ev);
}

static void on_ended(void *user, int exit_status, int signal)
{
	struct going *g = user;

	g->ended = true;
	g->status = exit_status;
	g->signal = signal;
	if (g->wire)
		wire_drain(g->wire);
	logscan_finish(g->scan);
	emit_end(g);
}

/* The agents' messages. */

static void on_held(struct going *g, struct peer *p, int64_t pid)
{
	if (g->releasing) {
		let_go(p);
		return;
	}
	/* What it printed before it was held came another way, and may not have been read yet. */
	inferior_drain(g->inferior);
	logscan_flush(g->scan);
	g->holdings = xgrow(g->holdings, &g->cap_holdings, g->nholdings + 1, sizeof *g->holdings);
	g->holdings[g->nholdings++] = (struct holding){p, pid};
}

static void came_back(struct going *g)
{
	g->asked = NULL;
	loop_timer_cancel(g->live->loop, g->stuck_timer);
	g->stuck_timer = 0;
}

/* Is this the answer that is waited for? */
static bool takes_scan(struct going *g, const struct peer *p)
{
	if (p != g->asked)
		return false;
	came_back(g);
	g->scanned = !g->given_up;
	return g->scanned;
}

static void on_message(void *user, struct peer *p, const json_t *message)
{
	struct going *g = user;
	const char *name = json_string_value(json_object_get(message, "event"));
	struct event ev;
	enum event_kind kind;

	if (name == NULL || !event_kind_of(name, &kind) || !event_from_agent(kind) ||
	    !event_decode(&ev, kind, message, NULL))
		return;
	ev.run = g->number;
	if (kind == EVENT_SCAN && !takes_scan(g, p)) {
		event_done(&ev);
		return;
	}
	if (kind == EVENT_HELD)
		on_held(g, p, ev.as.held.pid);
	else if (p == g->asked && g->releasing && kind != EVENT_PROGRESS)
		came_back(g);
	live_emit(g->live, &ev);
}

static void on_broken(void *user, struct peer *p)
{
	(void)p;
	emit_note(user, xstrdup("a process of the program sent something unreadable and is not listened to "
				"any more"));
}

static void on_gone(void *user, struct peer *p)
{
	struct going *g = user;

	if (p == g->asked)
		came_back(g);
	for (size_t i = 0; i < g->nholdings; i++) {
		if (g->holdings[i].peer == p)
			g->holdings[i--] = g->holdings[--g->nholdings];
	}
}

static void on_limit(void *user)
{
	struct going *g = user;

	g->limit_timer = 0;
	stop(g, "time limit");
}

static bool over(void *user)
{
	struct going *g = user;

	if (g->live->interrupted && g != g->live->main && !g->ended && !g->nholdings)
		stop(g, "interrupted");
	return g->ended || g->nholdings > 0;
}

static struct going *start(struct live *v, const char *name, enum launch_mode mode, int *ret_status,
			   struct error *e)
{
	struct going *g = xcalloc(1, sizeof *g);
	struct logscan_sink sink = {g, on_assertion, on_failure, on_traceback, on_rank};
	struct wire_events messages = {g, on_message, on_broken, on_gone};
	struct inferior_events events = {g, on_output, on_ended};
	struct event ev = {.kind = EVENT_RUN, .run = v->nruns};
	struct error why = {{0}};
	struct launch plan;

	*g = (struct going){.live = v, .number = v->nruns++, .name = name, .started = now_steady()};
	g->scan = logscan_new(&sink);
	g->wire = wire_open(v->loop, &messages, &why);
	launch_plan(&plan, v->options.argv, mode, v->options.agent, g->wire ? wire_path(g->wire) : NULL,
		    getenv("PYTHONPATH"), HOLD_SECONDS, mode == LAUNCH_REDIRECT && v->model->machine.gpus.n > 0);
	struct inferior_spec spec = {plan.argv.v, &plan.env, mode == LAUNCH_OBSERVE ? -1 : v->cwd,
				     mode != LAUNCH_OBSERVE, v->options.stdout_to};

	record_init(&run_record, &ev.as);
	ev.as.run.name = xstrdup(name);
	for (size_t i = 0; v->options.argv[i]; i++)
		strs_add(&ev.as.run.argv, v->options.argv[i]);
	ev.as.run.cwd = getcwd(NULL, 0);
	g->inferior = inferior_start(v->loop, &spec, &events, ret_status, e);
	if (g->inferior)
		ev.as.run.pid = inferior_pid(g->inferior);
	live_emit(v, &ev); /* the first event of the run all the same: events come only while the loop runs */
	launch_done(&plan);
	if (g->inferior == NULL) {
		going_free(g);
		return NULL;
	}
	if (g->wire == NULL)
		emit_note(g, xasprintf("the program is not watched from inside: %s", why.text));
	return g;
}

bool live_run(struct live *v, int *ret_status, struct error *e)
{
	v->main = start(v, "main", LAUNCH_OBSERVE, ret_status, e);
	if (v->main)
		loop_until(v->loop, over, v->main);
	return v->main != NULL;
}

/* The held process that made a finding by looking at the values: it still has the operand. */
static struct peer *witness(const struct live *v, struct going **ret_going)
{
	struct going *runs[] = {v->rerun, v->main};

	for (size_t k = 0; k < COUNT(runs); k++) {
		for (size_t i = 0; runs[k] && i < runs[k]->nholdings; i++) {
			const struct list *findings = &v->model->runs[runs[k]->number].findings;

			for (size_t f = 0; f < findings->n; f++) {
				const struct finding *made = LIST_AT(struct finding, *findings, f);

				if (!made->seen || made->pid != runs[k]->holdings[i].pid)
					continue;
				*ret_going = runs[k];
				return runs[k]->holdings[i].peer;
			}
		}
	}
	return NULL;
}

bool live_rerun(struct live *v, enum live_rerun how, double limit, struct error *e)
{
	bool cpu = how == LIVE_RERUN_CPU;
	int status;

	struct going *seen;

	/* What is held keeps its ports and files; it is needed only by who wants to ask it. */
	if (witness(v, &seen) == NULL && v->main)
		release(v->main);
	going_free(v->rerun);
	v->rerun = start(v, cpu ? "cpu_rerun" : "blocking_launch", cpu ? LAUNCH_REDIRECT : LAUNCH_BLOCKING,
			 &status, e);
	if (v->rerun == NULL)
		return false;
	v->rerun->limit_timer = loop_timer(v->loop, limit, on_limit, v->rerun);
	loop_until(v->loop, over, v->rerun);
	loop_timer_cancel(v->loop, v->rerun->limit_timer);
	v->rerun->limit_timer = 0;
	if (!v->rerun->ended)
		emit_end(v->rerun);
	return true;
}

static bool scan_over(void *user)
{
	struct going *g = user;

	return g->asked == NULL || g->given_up || g->live->interrupted;
}

static void on_scan_limit(void *user)
{
	struct going *g = user;

	g->given_up = true;
}

bool live_scan(struct live *v, double limit, struct error *e)
{
	struct going *g = NULL;
	struct peer *p = witness(v, &g);

	if (p == NULL)
		return error_set(e, "no process is left that has seen the bad values");
	json_t *command = json_pack("{s:s, s:f}", "do", "scan", "limit", limit);

	wire_send(p, command);
	json_decref(command);
	g->asked = p;
	g->scanned = g->given_up = false;
	/* The process keeps the limit itself; ours is for one that hangs in the user's own code. */
	int timer = loop_timer(v->loop, limit + SCAN_GRACE, on_scan_limit, g);

	loop_until(v->loop, scan_over, g);
	loop_timer_cancel(v->loop, timer);
	g->given_up = true;
	if (g->scanned)
		return true;
	return error_set(e, "%s", v->interrupted ? "interrupted" : g->asked == NULL ?
			 "the process ended before it answered" : "the process did not answer in time");
}

static bool main_ended(void *user)
{
	return ((struct going *)user)->ended;
}

/* A process that hangs in the walk over its data hears no release, and would keep the whole program. */
static void on_stuck(void *user)
{
	struct going *g = user;
	pid_t pid = wire_pid(g->asked);
	bool last = g->terminated;

	g->terminated = true;
	g->stuck_timer = last ? 0 : loop_timer(g->live->loop, TERM_GRACE, on_stuck, g);
	if (pid <= 1) /* of another PID namespace: it has no number here */
		return;
	kill(pid, last ? SIGKILL : SIGTERM);
	emit_note(g, xasprintf("process %d did not come back from the walk over its data, and got %s", (int)pid,
			       last ? "SIGKILL" : "SIGTERM"));
}

int live_finish(struct live *v)
{
	going_free(v->rerun);
	v->rerun = NULL;
	release(v->main);
	if (v->main->asked)
		v->main->stuck_timer = loop_timer(v->loop, RELEASE_GRACE, on_stuck, v->main);
	loop_until(v->loop, main_ended, v->main);
	return v->main->signal ? 128 + v->main->signal : v->main->status;
}

bool live_interrupted(const struct live *v)
{
	return v->interrupted;
}
