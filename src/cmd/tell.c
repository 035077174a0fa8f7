#include "cmd/tell.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/report.h"

static bool in_colour(const struct options *o, FILE *on)
{
	const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

	if (strcmp(o->color, "auto") != 0)
		return strcmp(o->color, "always") == 0;
	return isatty(fileno(on)) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

bool tell_json(const struct options *o, const struct model *m, const char *session, FILE *on)
{
	struct report r;
	struct buf b = {0};
	bool ok = true;

	if (o->json == NULL)
		return true;
	report_init(&r, m, session, o->redact);
	report_write(&r, "json", &b);
	FILE *f = strcmp(o->json, "-") == 0 ? on : fopen(o->json, "w");

	if (f == NULL || fwrite(b.data, 1, b.len, f) != b.len || fflush(f) != 0) {
		complain("%s: the JSON report could not be written: %s", o->json, strerror(errno));
		ok = false;
	}
	if (f && f != on)
		fclose(f);
	buf_done(&b);
	report_done(&r);
	return ok;
}

void tell_text(const struct options *o, const struct model *m, const char *session, FILE *on)
{
	struct report r;
	struct buf b = {0};

	report_init(&r, m, session, o->redact);
	r.color = in_colour(o, on);
	report_write(&r, o->format, &b);
	fwrite(b.data, 1, b.len, on);
	fflush(on);
	buf_done(&b);
	report_done(&r);
}

int tell_report(const struct options *o, const struct model *m, const char *session, const char *what)
{
	struct report r;
	bool alone = o->json && strcmp(o->json, "-") == 0;
	bool ok = tell_json(o, m, session, stdout);

	report_init(&r, m, session, o->redact);
	bool news = report_has_news(&r);

	report_done(&r);
	if (!alone && (news || strcmp(o->format, "text") != 0 || o->verbose))
		tell_text(o, m, session, stdout);
	if (!news && !o->verbose)
		complain("%s: no error of a GPU program was found in it", what);
	return !ok ? EXIT_UNUSABLE : news ? EXIT_DIAGNOSED : EXIT_NOTHING;
}
