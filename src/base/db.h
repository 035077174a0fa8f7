/*
 * db: SQLite with errors as values. The only file that includes sqlite3.h is db.c.
 */
#ifndef CUWHY_DB_H
#define CUWHY_DB_H

#include "base/util.h"

struct db;
struct query;

enum db_mode {
	DB_CREATE, /* a new file of mode 0600; an existing one is an error */
	DB_READ,   /* an existing one, perhaps a stranger's: never written to, nothing in it is run */
};

/* NULL on failure; error names the path and the reason. */
struct db *db_open(const char *path, enum db_mode mode, struct error *e);
void db_close(struct db *db); /* NULL is fine; queries must have been freed */

bool db_exec(struct db *db, const char *sql, struct error *e);

/* A prepared statement, reusable after query_reset. NULL on failure. */
struct query *query_new(struct db *db, const char *sql, struct error *e);
void query_free(struct query *q);

/* Parameters count from 1. Bytes and text must live until the query is reset. */
void query_int(struct query *q, int at, int64_t value);
void query_real(struct query *q, int at, double value);
void query_text(struct query *q, int at, const char *text); /* NULL binds null */
void query_blob(struct query *q, int at, const void *bytes, size_t len);

/* 1: a row is there; 0: done; -1: failed, error is filled. */
int query_step(struct query *q, struct error *e);
void query_reset(struct query *q);

/* Columns count from 0. Borrowed until the next step or reset; text is never NULL. */
int64_t column_int(struct query *q, int at);
double column_real(struct query *q, int at);
const char *column_text(struct query *q, int at);
const void *column_blob(struct query *q, int at, size_t *ret_len);

#endif
