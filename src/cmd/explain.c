/* explain: a diagnosis from a saved log alone. Needs no GPU, no PyTorch, no rerun. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/logscan.h"
#include "cmd/cmd.h"
#include "cmd/tell.h"
#include "diagnose/steps.h"
#include "facts/model.h"

/* Page-aligned: into an odd address read() copies about four times slower (measured on x86-64). */
static _Alignas(4096) char chunk[256 << 10];

static void fold(struct model *m, enum event_kind kind, const void *fact)
{
	struct event ev = {.kind = kind, .id = m->last_event + 1, .time = now_wall()};

	record_copy(event_record(kind), &ev.as, fact);
	model_fold(m, &ev);
	event_done(&ev);
}

static void on_assertion(void *user, const struct assertion *a)
{
	fold(user, EVENT_ASSERTION, a);
}

static void on_failure(void *user, const struct failure *f)
{
	fold(user, EVENT_FAILURE, f);
}

static void on_traceback(void *user, const struct traceback *t)
{
	fold(user, EVENT_TRACEBACK, t);
}

static void on_rank(void *user, int64_t rank)
{
	fold(user, EVENT_RANK, &(struct rank){rank});
}

/* "37 % of 9.8 GB" on a terminal, for what takes longer than a second. */
static void progress(off_t done, off_t size, double *next)
{
	if (now_steady() < *next || !tell_in_place())
		return;
	*next = now_steady() + 0.2;
	if (size > 0)
		fprintf(stderr, "\rcuwhy: reading, %d %% ", (int)(done * 100 / size));
	else
		fprintf(stderr, "\rcuwhy: reading, %lld MB ", (long long)(done >> 20));
}

static bool scan(int fd, const char *name, struct logscan *s, struct error *e)
{
	double started = now_steady(), next = started + 1;
	struct stat st = {0};
	off_t done = 0;
	ssize_t n = 1;

	fstat(fd, &st);
	while (n > 0 || (n < 0 && errno == EINTR)) {
		n = read(fd, chunk, sizeof chunk);
		if (n > 0)
			logscan_feed(s, 0, chunk, (size_t)n);
		done += n > 0 ? n : 0;
		progress(done, S_ISREG(st.st_mode) ? st.st_size : 0, &next);
	}
	if (next > started + 1.1)
		fputs("\r\033[K", stderr);
	logscan_finish(s);
	if (n < 0)
		return error_set(e, "%s: cannot be read: %s", name, strerror(errno));
	if (done == 0)
		return error_set(e, "%s: empty; save what the program printed, for example: "
				 "python train.py 2>&1 | tee log.txt", name);
	return true;
}

/* The checklist, as far as a log goes. */
static void judge(struct model *m)
{
	for (size_t i = 0; i < step_count; i++) {
		const struct step *s = &step_table[i];
		struct step_result result = {.id = (char *)s->id};
		struct buf finding = {0};
		enum step_status status = s->needless(m, &finding) ? STEP_SKIPPED : s->judge(m, &finding);

		result.status = (char *)step_status_name(status);
		result.finding = finding.data;
		fold(m, EVENT_STEP, &result);
		buf_done(&finding);
	}
}

static void name_run(struct model *m)
{
	struct run run;

	record_init(&run_record, &run);
	run.name = (char *)"log";
	fold(m, EVENT_RUN, &run);
}

static int explain(struct options *o)
{
	const char *name = o->nargs ? o->args[0] : "-";
	bool standard = strcmp(name, "-") == 0;
	struct error e = {{0}};
	struct model m;
	int fd, status;

	if (o->nargs > 1 || (o->nargs == 0 && isatty(0))) {
		complain(o->nargs ? "explain takes one file" : "explain needs a file, or a log on standard input");
		return EXIT_UNUSABLE;
	}
	fd = standard ? 0 : open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		complain("%s: cannot be opened: %s", name, strerror(errno));
		return EXIT_UNUSABLE;
	}
	model_init(&m);
	name_run(&m);
	struct logscan *s = logscan_new(&(struct logscan_sink){&m, on_assertion, on_failure, on_traceback, on_rank});

	if (scan(fd, standard ? "standard input" : name, s, &e)) {
		judge(&m);
		status = tell_report(o, &m, NULL, standard ? "standard input" : name);
	} else {
		complain("%s", e.text);
		status = EXIT_UNUSABLE;
	}
	logscan_free(s);
	model_done(&m);
	if (!standard)
		close(fd);
	return status;
}

const struct cmd cmd_explain = {
	"explain", VERB_EXPLAIN, "explain [OPTIONS] [FILE|-]", "diagnose from a saved log alone",
	"Exit status: 0 something was diagnosed, 1 nothing to diagnose in the log, 2 unusable input.\n", explain,
};
