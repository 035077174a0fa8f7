/* session: what was appended is read back, whatever happens to the writer or the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/db.h"
#include "session/session.h"

static char folder[64], path[128];

static int set_up(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/cuwhy-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/a#b?%%.cuwhy", folder);
	return 0;
}

static int tear_down(void **state)
{
	char *command = xasprintf("rm -rf '%s'", folder);

	(void)state;
	assert_int_equal(system(command), 0);
	free(command);
	return 0;
}

static void append_note(struct session *s, int64_t id, const char *text)
{
	struct event ev = {.kind = EVENT_NOTE, .id = id, .time = 1.5, .as.note.text = (char *)text};

	assert_true(session_append(s, &ev, NULL));
}

static void append_output(struct session *s, int64_t id, const char *bytes, size_t len)
{
	struct event ev = {.kind = EVENT_OUTPUT, .id = id, .time = 2, .as.output = {2, (char *)bytes, len}};

	assert_true(session_append(s, &ev, NULL));
}

static void collect(void *user, const struct event *ev)
{
	struct buf *b = user;

	if (ev->kind == EVENT_OUTPUT)
		buf_fmt(b, "%d:out%d:%zu;", (int)ev->id, ev->as.output.stream, ev->as.output.len);
	else if (ev->kind == EVENT_NOTE)
		buf_fmt(b, "%d:%s;", (int)ev->id, ev->as.note.text);
}

static void expect(const char *want)
{
	struct error e = {{0}};
	struct session *s = session_open(path, &e);
	struct buf b = {0};

	if (s == NULL)
		fail_msg("%s", e.text);
	assert_true(session_each(s, true, collect, &b, &e));
	assert_string_equal(b.data, want);
	buf_done(&b);
	session_close(s);
}

static void events_and_output_come_back_in_order(void **state)
{
	struct session *s = session_create(path, NULL);
	struct stat st;

	(void)state;
	assert_non_null(s);
	append_note(s, 1, "one");
	append_output(s, 2, "a\0b", 3);
	append_note(s, 3, "three");
	session_close(s);
	expect("1:one;2:out2:3;3:three;");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_null(session_create(path, NULL)); /* never over an existing file */
}

static void a_killed_writer_loses_nothing_committed(void **state)
{
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		struct session *s = session_create(path, NULL);

		append_note(s, 1, "kept");
		session_commit(s, NULL);
		append_note(s, 2, "not committed");
		kill(getpid(), SIGKILL);
	}
	waitpid(child, NULL, 0);
	expect("1:kept;");
}

static void refuse(const char *because)
{
	struct error e = {{0}};

	assert_null(session_open(path, &e));
	if (!strstr(e.text, because))
		fail_msg("\"%s\" does not say \"%s\"", e.text, because);
}

static void strangers_are_refused_with_a_reason(void **state)
{
	FILE *f;
	struct db *db;

	(void)state;
	refuse("No such file");
	f = fopen(path, "w");
	fputs("this is no database, and it is longer than a header of one would be", f);
	fclose(f);
	refuse("not a cuwhy session");
	unlink(path);
	db = db_open(path, DB_CREATE, NULL);
	assert_true(db_exec(db, "CREATE TABLE t (x)", NULL));
	refuse("some other program");
	assert_true(db_exec(db, "PRAGMA application_id = 1668642681; PRAGMA user_version = 99", NULL));
	db_close(db);
	refuse("newer cuwhy");
	unlink(path);
	mkdir(path, 0700);
	refuse("not a regular file");
}

static void a_truncated_file_is_read_as_far_as_it_goes(void **state)
{
	struct session *s = session_create(path, NULL);
	struct error e = {{0}};
	struct buf b = {0};
	char bytes[5000];
	struct stat st;

	(void)state;
	memset(bytes, 'x', sizeof bytes);
	append_note(s, 1, "first");
	for (int i = 2; i < 200; i++)
		append_output(s, i, bytes, sizeof bytes);
	session_close(s);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size / 2 / 4096 * 4096), 0);
	s = session_open(path, &e);
	if (s) { /* SQLite may notice at once, or when it comes to a missing page */
		assert_false(session_each(s, true, collect, &b, &e));
		assert_true(starts_with(b.data ? b.data : "", "1:first;"));
		session_close(s);
	}
	assert_true(strlen(e.text) > 0);
	buf_done(&b);
}

static void a_strangers_schema_is_not_run(void **state)
{
	struct session *s = session_create(path, NULL);
	struct db *db;
	char *sql = xasprintf("ATTACH '%s' AS s; DROP TABLE s.event; CREATE VIEW s.event AS WITH RECURSIVE c(x) AS "
			      "(SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS id, 0 AS time, 0 AS run, 'note' AS kind, "
			      "'{}' AS fact FROM c", path);
	char *other = xasprintf("%s/other", folder);

	(void)state;
	append_note(s, 1, "hello");
	session_close(s);
	db = db_open(other, DB_CREATE, NULL);
	assert_true(db_exec(db, sql, NULL));
	db_close(db);
	refuse("not a whole cuwhy session");
	free(other);
	free(sql);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name_) cmocka_unit_test_setup_teardown(name_, set_up, tear_down)
		TEST(events_and_output_come_back_in_order),
		TEST(a_killed_writer_loses_nothing_committed),
		TEST(strangers_are_refused_with_a_reason),
		TEST(a_truncated_file_is_read_as_far_as_it_goes),
		TEST(a_strangers_schema_is_not_run),
	};

	return cmocka_run_group_tests_name("session", tests, NULL, NULL);
}
