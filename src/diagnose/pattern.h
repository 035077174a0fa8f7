/*
 * pattern: texts with gaps, as the catalogue's tables write them.
 *
 * `*` stands for any text, `?` for one character, `{any}` for a number. The other names in braces
 * stand for a number too and keep it: {bad} the offending value; {low} and {high} the range that
 * was allowed, inclusive; {equal} both ends of it; {end} one more than the highest; {span} a size n
 * that allows -n to n-1. Everything else stands for itself.
 */
#ifndef CUWHY_PATTERN_H
#define CUWHY_PATTERN_H

#include "facts/record.h"

struct pattern_values {
	struct value bad, low, high;
};

/* Is the whole text like the pattern; is any part of it. found may be NULL; it is set only on success. */
bool pattern_whole(const char *pattern, const char *text, struct pattern_values *found);
bool pattern_within(const char *pattern, const char *text, struct pattern_values *found);

/* The number at the start of text, and how many bytes it takes: 0 when there is none. */
size_t pattern_number(const char *text, struct value *ret_number);

#endif
