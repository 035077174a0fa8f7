/*
 * report: the diagnosis as text, markdown, JSON and SARIF, all from the same model and verdict.
 */
#ifndef CUWHY_REPORT_H
#define CUWHY_REPORT_H

#include "diagnose/verdict.h"

struct report {
	const struct model *model;
	struct fault fault;
	struct verdict verdict;
	const char *session; /* absolute path; NULL: none */
	double created;
	bool redact;
	bool color;   /* text only */
	size_t width; /* text only: columns to wrap at */
};

/* Works fault and verdict out. model and session must outlive the report. */
void report_init(struct report *r, const struct model *m, const char *session, bool redact);
void report_done(struct report *r);

/* Appends the report in one of the formats of --format; the name must be one of them. */
void report_write(const struct report *r, const char *format, struct buf *out);
/* Is there anything to say: a verdict, or an error. */
bool report_news(const struct model *m);

/* Takes user and host names and paths above the project out of a finished report, whatever its format. */
void report_redact(const struct report *r, struct buf *text);
/* Appends JSON as ASCII, so that no byte of a stranger's can steer a terminal, and drops it. */
void report_dump(json_t *json, struct buf *out);

/* The formats, one file each. */
void report_text(const struct report *r, struct buf *out);
void report_markdown(const struct report *r, struct buf *out);
void report_json(const struct report *r, struct buf *out);
void report_sarif(const struct report *r, struct buf *out);

/* Sentences that several formats share; each appends, or nothing when nothing is known. */
void report_place(const struct place *p, struct buf *out);   /* train.py:42 in train() */
void report_operand(const struct verdict *v, struct buf *out); /* labels (target): int64 [64] on cuda:0, ... */
void report_values(const struct verdict *v, struct buf *out);  /* 0 to 9; 3 elements are not: 10, at [17] */
void report_data(const struct verdict *v, struct buf *out);  /* train_loader, batch 312: samples 19985, ... */

#endif
