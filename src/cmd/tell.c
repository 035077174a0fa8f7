#include "cmd/tell.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "report/report.h"

static bool can_steer(FILE *on)
{
	const char *term = getenv("TERM");

	return isatty(fileno(on)) && term && *term && strcmp(term, "dumb") != 0;
}

bool tell_in_place(void)
{
	return can_steer(stderr);
}

/* Where text is wrapped: at the terminal's width, within what reads well. */
static size_t columns_of(FILE *on)
{
	struct winsize size;

	if (ioctl(fileno(on), TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
		return 100;
	return size.ws_col < 50 ? 50 : size.ws_col > 110 ? 110 : size.ws_col;
}

static bool in_colour(const struct options *o, FILE *on)
{
	const char *no = getenv("NO_COLOR");

	if (strcmp(o->color, "auto") != 0)
		return strcmp(o->color, "always") == 0;
	return can_steer(on) && !(no && *no);
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

bool tell_text(const struct options *o, const struct model *m, const char *session, FILE *on)
{
	struct report r;
	struct buf b = {0};

	report_init(&r, m, session, o->redact);
	r.color = in_colour(o, on);
	r.width = columns_of(on);
	report_write(&r, o->format, &b);
	bool ok = fwrite(b.data, 1, b.len, on) == b.len && fflush(on) == 0;

	if (!ok)
		complain("the report could not be written: %s", strerror(errno));
	buf_done(&b);
	report_done(&r);
	return ok;
}

int tell_report(const struct options *o, const struct model *m, const char *session, const char *what)
{
	bool alone = o->json && strcmp(o->json, "-") == 0, news = report_news(m);
	bool ok = tell_json(o, m, session, stdout);

	if (!alone && (news || strcmp(o->format, "text") != 0 || o->verbose))
		ok &= tell_text(o, m, session, stdout);
	if (!news && !o->verbose)
		complain("%s: no error of a GPU program was found in it", what);
	return !ok ? EXIT_UNUSABLE : news ? EXIT_DIAGNOSED : EXIT_NOTHING;
}
