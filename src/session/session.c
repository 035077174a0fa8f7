#include "session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/db.h"

enum {
	APPLICATION_ID = 0x63757779, /* "cuwy" */
	SCHEMA = 1,
	COMMIT_BYTES = 4 << 20, /* of output in one transaction, so that memory stays small */
};

struct session {
	char *path; /* absolute */
	struct db *db;
	struct query *put_event, *put_output;
	bool in_transaction, lost;
	bool durable; /* this transaction waits for the disk, so that it outlives the machine's power */
	size_t pending;
};

static const char schema[] =
	"CREATE TABLE session (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;"
	/* What happened, in order. fact: JSON, by kind; the views below give its columns. */
	"CREATE TABLE event (id INTEGER PRIMARY KEY, time REAL NOT NULL, run INTEGER NOT NULL,"
	" kind TEXT NOT NULL, fact TEXT NOT NULL);"
	/* What the program printed: stream 1 is stdout, 2 stderr. Shares its ids with event. */
	"CREATE TABLE output (id INTEGER PRIMARY KEY, time REAL NOT NULL, run INTEGER NOT NULL,"
	" stream INTEGER NOT NULL, bytes BLOB NOT NULL);";

/* A view a kind, so that a shell user reads columns and not JSON. */
static bool create_views(struct db *db, struct error *e)
{
	bool ok = true;

	for (int k = 0; ok && k < EVENT_KINDS; k++) {
		const struct record *r = event_record((enum event_kind)k);
		struct buf sql = {0};

		if (r == NULL)
			continue;
		buf_fmt(&sql, "CREATE VIEW fact_%s AS SELECT id, time, run AS run_number", event_name((enum event_kind)k));
		for (const struct field *f = r->fields; f->name; f++)
			buf_fmt(&sql, ", json_extract(fact, '$.%s') AS \"%s\"", f->name,
				strcmp(f->name, "id") == 0 ? "fact_id" : f->name);
		buf_fmt(&sql, " FROM event WHERE kind = '%s'", event_name((enum event_kind)k));
		ok = db_exec(db, sql.data, e);
		buf_done(&sql);
	}
	return ok;
}

static bool create_schema(struct db *db, struct error *e)
{
	char *pragmas = xasprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", APPLICATION_ID, SCHEMA);
	bool ok = db_exec(db, "PRAGMA journal_mode = WAL;", e) &&
		  db_exec(db, "BEGIN", e) && db_exec(db, pragmas, e) && db_exec(db, schema, e) &&
		  create_views(db, e) &&
		  db_exec(db, "INSERT INTO session VALUES ('cuwhy', '" PACKAGE_VERSION "'); COMMIT", e);

	free(pragmas);
	return ok;
}

static char *absolute(const char *path)
{
	char cwd[PATH_MAX];

	if (path[0] == '/' || getcwd(cwd, sizeof cwd) == NULL)
		return xstrdup(path);
	while (starts_with(path, "./"))
		path += 2;
	return xasprintf("%s/%s", strcmp(cwd, "/") ? cwd : "", path);
}

static struct session *session_new(const char *path)
{
	struct session *s = xcalloc(1, sizeof *s);

	s->path = absolute(path);
	return s;
}

struct session *session_create(const char *path, struct error *e)
{
	struct session *s = session_new(path);

	s->db = db_open(s->path, DB_CREATE, e);
	if (s->db && create_schema(s->db, e) &&
	    (s->put_event = query_new(s->db, "INSERT INTO event VALUES (?, ?, ?, ?, ?)", e)) &&
	    (s->put_output = query_new(s->db, "INSERT INTO output VALUES (?, ?, ?, ?, ?)", e)))
		return s;
	session_close(s);
	return NULL;
}

void session_close(struct session *s)
{
	if (s == NULL)
		return;
	if (s->put_event) {
		session_commit(s, NULL);
		query_free(s->put_event);
		query_free(s->put_output);
		/* Folds the -wal file in: what is left is one file that can be moved and mailed. */
		if (!s->lost)
			db_exec(s->db, "PRAGMA journal_mode = DELETE", NULL);
	}
	db_close(s->db);
	free(s->path);
	free(s);
}

const char *session_path(const struct session *s)
{
	return s->path;
}

static bool lose(struct session *s)
{
	s->lost = true;
	if (s->in_transaction)
		db_exec(s->db, "ROLLBACK", NULL);
	s->in_transaction = false;
	return false;
}

static int put(struct session *s, const struct event *ev, struct error *e)
{
	struct query *q = ev->kind == EVENT_OUTPUT ? s->put_output : s->put_event;
	char *fact = NULL;

	query_int(q, 1, ev->id);
	query_real(q, 2, ev->time);
	query_int(q, 3, ev->run);
	if (ev->kind == EVENT_OUTPUT) {
		query_int(q, 4, ev->as.output.stream);
		query_blob(q, 5, ev->as.output.bytes, ev->as.output.len);
		s->pending += ev->as.output.len;
	} else {
		json_t *json = record_encode(event_record(ev->kind), &ev->as, false);

		fact = json_dumps(json, JSON_COMPACT);
		json_decref(json);
		query_text(q, 4, event_name(ev->kind));
		query_text(q, 5, fact);
		s->pending += strlen(fact);
	}
	int rc = query_step(q, e);

	query_reset(q);
	free(fact);
	return rc;
}

/*
 * Events are few and must outlive a loss of power; output may be much, and is made as durable by the next
 * event. SQLite takes the setting only between transactions.
 */
static bool begin(struct session *s, bool durable, struct error *e)
{
	if (s->in_transaction && (s->durable || !durable))
		return true;
	if (!session_commit(s, e))
		return false;
	s->durable = durable;
	s->in_transaction = db_exec(s->db, durable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL", e) &&
			    db_exec(s->db, "BEGIN", e);
	return s->in_transaction;
}

bool session_append(struct session *s, const struct event *ev, struct error *e)
{
	if (s->lost)
		return error_set(e, "%s: given up earlier", s->path);
	if (!begin(s, ev->kind != EVENT_OUTPUT, e))
		return lose(s);
	if (put(s, ev, e) != 0)
		return lose(s);
	return s->pending < COMMIT_BYTES || session_commit(s, e);
}

bool session_commit(struct session *s, struct error *e)
{
	if (s->lost || !s->in_transaction)
		return !s->lost;
	s->pending = 0;
	if (!db_exec(s->db, "COMMIT", e))
		return lose(s);
	s->in_transaction = false;
	return true;
}

/* The first column of the first row; -1 when there is none. */
static int64_t number(struct db *db, const char *sql)
{
	struct query *q = query_new(db, sql, NULL);
	int64_t value = q && query_step(q, NULL) == 1 ? column_int(q, 0) : -1;

	query_free(q);
	return value;
}

struct session *session_open(const char *path, struct error *e)
{
	struct session *s = session_new(path);

	s->db = db_open(s->path, DB_READ, e);
	if (s->db == NULL) {
		struct error why = e ? *e : (struct error){{0}};

		if (strstr(why.text, "not a database"))
			error_set(e, "%s: not a cuwhy session (no SQLite file); sessions are the .cuwhy files that "
				  "`cuwhy run` prints the path of", path);
	} else if (number(s->db, "PRAGMA application_id") != APPLICATION_ID) {
		error_set(e, "%s: not a cuwhy session (a database of some other program)", path);
	} else if (number(s->db, "PRAGMA user_version") > SCHEMA) {
		error_set(e, "%s: written by a newer cuwhy (session schema %d, this one reads up to %d): "
			  "update cuwhy to open it", path, (int)number(s->db, "PRAGMA user_version"), SCHEMA);
	} else if (number(s->db, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN "
			  "('event', 'output')") != 2) {
		error_set(e, "%s: not a whole cuwhy session (its tables are missing)", path);
	} else {
		return s;
	}
	session_close(s);
	return NULL;
}

/* One row of the merged sequence; columns as in the query of session_each. */
static void tell(struct query *q, void (*fn)(void *user, const struct event *ev), void *user)
{
	struct event ev = {.kind = EVENT_OUTPUT};
	const char *kind = column_text(q, 3);
	enum event_kind known;

	if (kind[0] == '\0') {
		ev.as.output.stream = (int)column_int(q, 4);
		const void *bytes = column_blob(q, 5, &ev.as.output.len);

		ev.as.output.bytes = xstrndup(bytes, ev.as.output.len);
	} else {
		/* Kinds this version does not know are passed over: a newer minor version may add some. */
		json_t *json = json_loads(column_text(q, 5), 0, NULL);
		bool ok = event_kind_of(kind, &known) && event_decode(&ev, known, json, NULL);

		json_decref(json);
		if (!ok)
			return;
	}
	ev.id = column_int(q, 0);
	ev.time = column_real(q, 1);
	ev.run = (int)column_int(q, 2);
	fn(user, &ev);
	event_done(&ev);
}

bool session_each(struct session *s, bool output, void (*fn)(void *user, const struct event *ev), void *user,
		  struct error *e)
{
	struct error why = {{0}};
	char *sql = xasprintf("SELECT id, time, run, kind, 0, fact FROM event %s ORDER BY id",
			      output ? "UNION ALL SELECT id, time, run, '', stream, bytes FROM output" : "");
	struct query *q = query_new(s->db, sql, &why);
	int rc = q ? 1 : -1;

	while (rc == 1 && (rc = query_step(q, &why)) == 1)
		tell(q, fn, user);
	query_free(q);
	free(sql);
	if (rc == -1)
		return error_set(e, "%s; what could be read before the damage is shown", why.text);
	return true;
}
