#include "cmd/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/live.h"
#include "cmd/batch.h"
#include "cmd/files.h"
#include "cmd/tell.h"
#include "device/machine.h"
#include "diagnose/walk.h"
#include "report/report.h"

/* A program that took its CPU branch because there is no GPU here has not been diagnosed by ending well:
 * what it does on a GPU is still to be seen. */
static bool wants_diagnosis(const struct model *m, const struct options *o)
{
	return report_news(m) || o->steps.n > 0 || m->runs[0].cuda_absent;
}

struct limits {
	const struct options *options;
	const struct model *model;
};

static double limit_of(void *user, const struct step *s)
{
	const struct limits *l = user;

	for (size_t i = 0; i < l->options->nlimits; i++) {
		if (strcmp(l->options->limits[i].step, s->id) == 0)
			return l->options->limits[i].seconds;
	}
	/* A program that ended well is not made to wait for long. */
	if (s->way == STEP_CPU && !report_news(l->model) && l->model->runs[0].has_ended)
		return fmin(s->limit, 10 + 2 * l->model->runs[0].ended.seconds);
	return s->limit;
}

static void tell_machine(struct live *v)
{
	struct event ev = {.kind = EVENT_MACHINE};

	machine_facts(&ev.as.machine);
	live_emit(v, &ev);
}

/* The session; NULL with a line on stderr when it cannot be kept: the diagnosis goes on without. */
static struct session *open_session(const struct options *o)
{
	struct error e = {{0}};
	struct session *s = NULL;

	if (o->session) {
		s = session_create(o->session, &e);
	} else {
		/* Several runs may start in one second: ranks started by hand, say. */
		for (int number = 1; s == NULL && number < 100; number++) {
			char *path = files_new_session(o->args, number, &e);

			s = path ? session_create(path, &e) : NULL;
			free(path);
			if (!ends_with(e.text, "exists already"))
				break;
		}
	}
	if (s == NULL)
		complain("%s; the diagnosis goes on, but no session is kept", e.text);
	return s;
}

/* A run that found nothing leaves no file behind, unless one was asked for. */
static void close_session(const struct options *o, struct session *s, bool news)
{
	char *path = s ? xstrdup(session_path(s)) : NULL;

	session_close(s);
	if (path && !news && !o->session)
		unlink(path);
	free(path);
}

static void tell(const struct options *o, const struct model *m, const struct session *s, bool news)
{
	const char *session = s && (news || o->session) ? session_path(s) : NULL;

	tell_json(o, m, session, stdout);
	if (news || o->verbose)
		tell_text(o, m, session, stderr);
}

int run_command(struct options *o)
{
	bool json_alone = o->json && strcmp(o->json, "-") == 0, news = false;
	struct error e = {{0}};
	struct model m;
	struct limits limits = {o, &m};
	struct batch batch = {.model = &m, .verbose = o->verbose};
	struct loop *l = loop_new();
	struct session *s = open_session(o);
	char *agent = files_agent();
	int status = EXIT_OURS;

	model_init(&m);
	struct live_options options = {
		.argv = o->args, .agent = agent, .stdout_to = json_alone ? 2 : 1, .session = s,
		.user = &batch, .told = batch_told, .session_lost = batch_session_lost,
	};
	struct live *v = live_new(l, &m, &options);

	if (access(agent, R_OK) != 0)
		complain("%s: the agent is missing, so that the program is only watched from outside; install cuwhy again",
			 agent);
	tell_machine(v);
	if (live_run(v, &status, &e)) {
		if (wants_diagnosis(&m, o))
			walk_all(v, &m, &(struct walk_options){&o->steps, &o->skip, limit_of, &limits});
		batch_quiet(&batch);
		status = live_finish(v);
		news = report_news(&m);
		tell(o, &m, s, news);
	} else {
		complain("%s", e.text);
	}
	live_free(v);
	close_session(o, s, news);
	model_done(&m);
	loop_free(l);
	free(agent);
	return status;
}

static int run(struct options *o)
{
	if (o->nargs == 0) {
		complain("no command to run; for example: cuwhy python train.py");
		return EXIT_OURS;
	}
	return run_command(o);
}

const struct cmd cmd_run = {
	"run", VERB_RUN, "[run] [OPTIONS] [--] COMMAND [ARG...]", "run COMMAND and diagnose it when it fails",
	"The program's output and exit status stay its own; the report goes to stderr. With --json - the\n"
	"program's stdout goes to stderr, so that stdout holds the JSON alone.\n"
	"Exit status: the program's own (128+N for signal N); 125 cuwhy itself failed, 126 COMMAND could not be\n"
	"executed, 127 it was not found.\n", run,
};
