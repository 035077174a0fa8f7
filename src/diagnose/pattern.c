#include "diagnose/pattern.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

size_t pattern_number(const char *text, struct value *ret_number)
{
	size_t len = text[0] == '-' ? 1 : 0;
	bool whole = true;
	char *end;

	if (!isdigit((unsigned char)text[len]))
		return 0;
	len += strspn(text + len, "0123456789");
	if (text[len] == '.' && isdigit((unsigned char)text[len + 1])) {
		whole = false;
		len += 1 + strspn(text + len + 1, "0123456789");
	}
	errno = 0;
	*ret_number = value_int(strtoll(text, &end, 10));
	if (!whole || errno == ERANGE)
		*ret_number = value_real(strtod(text, &end));
	return len;
}

static struct value plus(struct value v, int64_t by)
{
	return v.kind == VALUE_INT ? value_int(v.i + by) : v;
}

static struct value negative(struct value v)
{
	return v.kind == VALUE_INT ? value_int(-v.i) : v;
}

/* Puts a number where the name in braces says; false when the name is none of ours. */
static bool keep(const char *name, size_t len, struct value number, struct pattern_values *into)
{
#define IS(word) (len == sizeof(word) - 1 && memcmp(name, word, len) == 0)
	if (IS("bad"))
		into->bad = number;
	else if (IS("low"))
		into->low = number;
	else if (IS("high"))
		into->high = number;
	else if (IS("equal"))
		into->low = into->high = number;
	else if (IS("end"))
		into->high = plus(number, -1);
	else if (IS("span"))
		into->low = negative(number), into->high = plus(number, -1);
	else
		return IS("any");
	return true;
#undef IS
}

/* One step of pattern and text: false when they differ here. */
static bool advance(const char **pattern, const char **text, struct pattern_values *into)
{
	const char *p = *pattern, *close = *p == '{' ? strchr(p, '}') : NULL;
	struct value number;

	if (close) {
		size_t len = pattern_number(*text, &number);

		if (len && keep(p + 1, (size_t)(close - p - 1), number, into)) {
			*pattern = close + 1;
			*text += len;
			return true;
		}
	}
	if (*p == '\0' || **text == '\0' || (*p != '?' && *p != **text))
		return false;
	(*pattern)++;
	(*text)++;
	return true;
}

/*
 * A gap is tried as short as possible, and only the last gap is ever made longer: enough for
 * patterns whose other parts match in one way only, and never slower than pattern times text.
 */
static bool match(const char *pattern, const char *text, bool anywhere, struct pattern_values *found)
{
	struct pattern_values values = {0};
	const char *gap = anywhere ? pattern : NULL, *from = text;

	for (;;) {
		if (*pattern == '*') {
			gap = ++pattern;
			from = text;
		} else if (*pattern == '\0' && (anywhere || *text == '\0')) {
			break;
		} else if (!advance(&pattern, &text, &values)) {
			if (gap == NULL || *from == '\0')
				return false;
			pattern = gap;
			text = ++from;
		}
	}
	if (found)
		*found = values;
	return true;
}

bool pattern_whole(const char *pattern, const char *text, struct pattern_values *found)
{
	return match(pattern, text, false, found);
}

bool pattern_within(const char *pattern, const char *text, struct pattern_values *found)
{
	return match(pattern, text, true, found);
}
