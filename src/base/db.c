#include "base/db.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VALUE_MAX = 64 << 20 }; /* bytes of one value of a stranger's file */

struct db {
	sqlite3 *handle;
	char *path;
};

struct query {
	struct db *db;
	sqlite3_stmt *stmt;
};

static bool fail(struct db *db, struct error *e)
{
	return error_set(e, "%s: %s", db->path, db->handle ? sqlite3_errmsg(db->handle) : "out of memory");
}

/* SQLite reads `%`, `?` and `#` of a file: name as syntax. */
static char *as_uri(const char *path, const char *query)
{
	struct buf b = {0};

	buf_str(&b, "file:");
	for (const char *p = path; *p; p++) {
		if (strchr("%?#", *p))
			buf_fmt(&b, "%%%02X", (unsigned char)*p);
		else
			buf_chr(&b, *p);
	}
	buf_str(&b, query);
	return buf_take(&b);
}

/* A session whose writer was killed has its newest rows in the -wal file, which needs a shared memory
 * file to be read. Where none can be made (read-only folder), what is in the file itself is read. */
static bool open_for_reading(struct db *db, struct error *e)
{
	struct query *q;
	int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;

	for (int try = 0; try < 2; try++) {
		char *uri = as_uri(db->path, try ? "?immutable=1" : "");
		int rc = sqlite3_open_v2(uri, &db->handle, flags, NULL);

		free(uri);
		sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
		sqlite3_limit(db->handle, SQLITE_LIMIT_LENGTH, VALUE_MAX);
		if (rc == SQLITE_OK && (q = query_new(db, "SELECT count(*) FROM sqlite_master", e))) {
			rc = query_step(q, e) == 1 ? SQLITE_OK : sqlite3_errcode(db->handle);
			query_free(q);
			if (rc == SQLITE_OK)
				return true;
		}
		fail(db, e);
		sqlite3_close(db->handle);
		db->handle = NULL;
	}
	return false;
}

struct db *db_open(const char *path, enum db_mode mode, struct error *e)
{
	struct db *db = xcalloc(1, sizeof *db);
	struct stat st;
	bool ok;

	db->path = xstrdup(path);
	if (mode == DB_READ) {
		if (stat(path, &st) != 0)
			ok = error_set(e, "%s: %s", path, strerror(errno));
		else if (!S_ISREG(st.st_mode))
			ok = error_set(e, "%s: not a regular file", path);
		else
			ok = open_for_reading(db, e);
	} else {
		int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

		if (fd < 0)
			ok = error_set(e, "%s: %s", path, errno == EEXIST ? "exists already" : strerror(errno));
		else
			ok = close(fd) == 0 && (sqlite3_open_v2(path, &db->handle, SQLITE_OPEN_READWRITE |
				SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK || fail(db, e));
	}
	if (!ok) {
		db_close(db);
		return NULL;
	}
	sqlite3_busy_timeout(db->handle, 2000);
	return db;
}

void db_close(struct db *db)
{
	if (db == NULL)
		return;
	sqlite3_close(db->handle);
	free(db->path);
	free(db);
}

bool db_exec(struct db *db, const char *sql, struct error *e)
{
	return sqlite3_exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK || fail(db, e);
}

struct query *query_new(struct db *db, const char *sql, struct error *e)
{
	struct query *q = xcalloc(1, sizeof *q);

	q->db = db;
	if (sqlite3_prepare_v2(db->handle, sql, -1, &q->stmt, NULL) == SQLITE_OK)
		return q;
	fail(db, e);
	free(q);
	return NULL;
}

void query_free(struct query *q)
{
	if (q == NULL)
		return;
	sqlite3_finalize(q->stmt);
	free(q);
}

void query_int(struct query *q, int at, int64_t value)
{
	sqlite3_bind_int64(q->stmt, at, value);
}

void query_real(struct query *q, int at, double value)
{
	sqlite3_bind_double(q->stmt, at, value);
}

void query_text(struct query *q, int at, const char *text)
{
	sqlite3_bind_text(q->stmt, at, text, -1, SQLITE_STATIC);
}

void query_blob(struct query *q, int at, const void *bytes, size_t len)
{
	sqlite3_bind_blob64(q->stmt, at, bytes, len, SQLITE_STATIC);
}

int query_step(struct query *q, struct error *e)
{
	int rc = sqlite3_step(q->stmt);

	if (rc == SQLITE_ROW)
		return 1;
	if (rc == SQLITE_DONE)
		return 0;
	fail(q->db, e);
	return -1;
}

void query_reset(struct query *q)
{
	sqlite3_reset(q->stmt);
	sqlite3_clear_bindings(q->stmt);
}

int64_t column_int(struct query *q, int at)
{
	return sqlite3_column_int64(q->stmt, at);
}

double column_real(struct query *q, int at)
{
	return sqlite3_column_double(q->stmt, at);
}

const char *column_text(struct query *q, int at)
{
	const char *text = (const char *)sqlite3_column_text(q->stmt, at);

	return text ? text : "";
}

const void *column_blob(struct query *q, int at, size_t *ret_len)
{
	const void *bytes = sqlite3_column_blob(q->stmt, at);

	*ret_len = (size_t)sqlite3_column_bytes(q->stmt, at);
	return bytes;
}
