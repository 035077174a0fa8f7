/* report: the report of recorded sessions, from the file alone. */
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/tell.h"
#include "session/session.h"

static void fold(void *user, const struct event *ev)
{
	model_fold(user, ev);
}

static int report_one(struct options *o, const char *path)
{
	struct error e = {{0}};
	struct session *s = session_open(path, &e);
	struct model m;
	int status;

	if (s == NULL) {
		complain("%s", e.text);
		return EXIT_UNUSABLE;
	}
	model_init(&m);
	if (!session_each(s, false, fold, &m, &e))
		complain("%s", e.text);
	if (m.last_event == 0) {
		complain("%s: the session holds no event", path);
		status = EXIT_UNUSABLE;
	} else {
		status = tell_report(o, &m, session_path(s), path);
	}
	model_done(&m);
	session_close(s);
	return status;
}

static int report(struct options *o)
{
	int worst = EXIT_DIAGNOSED;

	if (o->nargs == 0) {
		complain("report needs a session: the .cuwhy file that `cuwhy run` printed the path of");
		return EXIT_UNUSABLE;
	}
	for (int i = 0; i < o->nargs; i++) {
		int status = report_one(o, o->args[i]);

		if (status > worst)
			worst = status;
	}
	return worst;
}

const struct cmd cmd_report = {
	"report", VERB_REPORT, "report [OPTIONS] SESSION...", "print the report of recorded sessions", NULL, report,
};
