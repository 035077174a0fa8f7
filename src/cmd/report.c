/* report: the report of recorded sessions, from the file alone. */
#include <stdlib.h>

#include "cmd/cmd.h"
#include "cmd/tell.h"
#include "session/session.h"

/* Several sessions are one report: those of the ranks of one job, say. */
struct merge {
	struct model *model;
	int number; /* of the session, from 0 */
};

static void fold(void *user, const struct event *ev)
{
	const struct merge *to = user;
	struct event mine = *ev; /* borrows what ev owns */

	/* Assertions are numbered within a session, and a step that found nothing hides none that did. */
	if (ev->kind == EVENT_ASSERTION && ev->as.assertion.id != INT_UNKNOWN)
		mine.as.assertion.id = ev->as.assertion.id % (1 << 20) + ((int64_t)to->number << 20);
	if (ev->kind == EVENT_STEP && to->number > 0 && !step_is(&ev->as.step, "found"))
		return;
	model_fold(to->model, &mine);
}

/* Adds a session to the model. *ret_path is its absolute path, owned by the caller. */
static bool add(const char *path, struct merge *to, char **ret_path, struct error *e)
{
	struct session *s = session_open(path, e);

	if (s == NULL)
		return false;
	int64_t before = to->model->last_event;

	if (!session_each(s, false, fold, to, e))
		complain("%s", e->text);
	free(*ret_path);
	*ret_path = xstrdup(session_path(s));
	session_close(s);
	return to->model->last_event != before || error_set(e, "%s: the session holds no event", path);
}

static int report(struct options *o)
{
	struct model m;
	struct merge to = {&m, 0};
	char *path = NULL;
	bool ok = true;
	int status = EXIT_UNUSABLE;

	if (o->nargs == 0) {
		complain("report needs a session: the .cuwhy file that `cuwhy run` printed the path of");
		return EXIT_UNUSABLE;
	}
	model_init(&m);
	for (; to.number < o->nargs; to.number++) {
		struct error e = {{0}};

		if (!add(o->args[to.number], &to, &path, &e)) {
			complain("%s", e.text);
			ok = false;
		}
	}
	if (path)
		status = tell_report(o, &m, o->nargs == 1 ? path : NULL, o->args[0]);
	free(path);
	model_done(&m);
	return ok ? status : EXIT_UNUSABLE;
}

const struct cmd cmd_report = {
	"report", VERB_REPORT, "report [OPTIONS] SESSION...", "print the report of recorded sessions (several: one)", NULL,
	report,
};
