/*
 * candidates: from the block and thread of an assertion line to the elements that can have failed.
 *
 * A printed thread proves that at least one of its candidates is bad; a thread that printed nothing
 * proves nothing, since the kernel was being ended. Where a kernel's indexing allows no answer, none
 * is given. Formulas are rows of one table, read in the kernels' sources release by release; "flat"
 * means the position in row-major order.
 */
#ifndef CUWHY_CANDIDATES_H
#define CUWHY_CANDIDATES_H

#include "facts/facts.h"

#define CANDIDATES_MAX 64

enum exactness {
	CANDIDATES_NONE,   /* block and thread tell nothing about the element */
	CANDIDATES_EXACT,  /* every element in the set is bad: one a printed thread */
	CANDIDATES_ONE_OF, /* at least one of the set is bad */
	CANDIDATES_MODULO, /* the same, and the size is not known: the rule goes on without end */
};

/* What is known about the operand and the machine; 0 and NULL for what is not. */
struct candidate_hint {
	const int64_t *shape; /* of the operand: target, index, probabilities */
	size_t ndim;
	int64_t slice;           /* elements that one index selects */
	int64_t multiprocessors; /* of the GPU */
	const char *torch;       /* 2.4.0 */
	const char *dtype;       /* of the operand, or of the input that is as large: float32 */
};

struct candidate_set {
	enum exactness exactness;
	const char *operand;  /* (words, marked for translation) what the elements count; NULL with NONE */
	struct ints elements; /* ascending, distinct, CANDIDATES_MAX at most; owned */
	bool more;            /* there are more than that */
	char rule[200];       /* in words: i = 1024*block + thread: element 1281 */
};

/* Fills out, which is overwritten; hint may be NULL. Takes the union over all printed threads. */
void candidates_of(const struct assertion *a, const struct candidate_hint *hint, struct candidate_set *out);
void candidate_set_done(struct candidate_set *s);

#endif
