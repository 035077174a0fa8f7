/* base: growable bytes, errors, and what may be shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/show.h"
#include "base/util.h"

static void buf_is_a_string_at_any_time(void **state)
{
	struct buf b = {0};

	(void)state;
	buf_add(&b, "ab\0c", 4);
	assert_int_equal(b.len, 4);
	assert_int_equal(b.data[4], 0);
	buf_fmt(&b, "%d", 7);
	buf_drop(&b, 3);
	assert_string_equal(b.data, "c7");
	char *text = buf_take(&b);

	assert_string_equal(text, "c7");
	assert_null(b.data);
	free(text);
	assert_string_equal((text = buf_take(&b)), "");
	free(text);
}

static void error_is_cut_not_overrun(void **state)
{
	struct error e;
	char *much = xmalloc(5000);

	(void)state;
	memset(much, 'x', 4999);
	much[4999] = '\0';
	assert_false(error_set(&e, "%s", much));
	assert_int_equal(strlen(e.text), sizeof e.text - 1);
	assert_false(error_set(NULL, "nobody listens"));
	free(much);
}

static void hostile_text_is_shown_not_sent(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"plain \xc3\xa9 \xe4\xb8\xad", "plain \xc3\xa9 \xe4\xb8\xad"},
		{"a\033[31mred", "a\\x1b[31mred"},
		{"line\nnext\ttab\r", "line next tab "},
		{"bell\a del\x7f", "bell\\x07 del\\x7f"},
		{"c1 \xc2\x9b!", "c1 \\x9b!"},
		{"bidi \xe2\x80\xae!", "bidi \\u{202e}!"},
		{"zero\xe2\x80\x8bwidth", "zero\\u{200b}width"},
		{"broken \xff\xc3(", "broken \\xff\\xc3("},
		{"overlong \xc0\xaf", "overlong \\xc0\\xaf"},
		{"surrogate \xed\xa0\x80", "surrogate \\xed\\xa0\\x80"},
		{"cut \xe4\xb8", "cut \\xe4\\xb8"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct buf b = {0};

		show_text(&b, rows[i].in);
		assert_string_equal(b.data, rows[i].out);
		buf_done(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buf_is_a_string_at_any_time),
		cmocka_unit_test(error_is_cut_not_overrun),
		cmocka_unit_test(hostile_text_is_shown_not_sent),
	};

	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
