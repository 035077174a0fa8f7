/*
 * fault: what happened to the user's own run, as far as it was printed and raised.
 */
#ifndef CUWHY_FAULT_H
#define CUWHY_FAULT_H

#include "diagnose/catalog.h"
#include "facts/model.h"

struct fault {
	const char *kind; /* of the contract: device_assert, ..., none */
	char *message;    /* first line of the error */
	int64_t error_code;
	int64_t rank;
	/* A GPU found the fault after the launch: the line that Python names may be a later one. */
	bool late;
	struct explanation log; /* of the first assertion, else of the error */
	const struct assertion *assertion; /* the earliest; borrowed from the model; NULL: none */
};

void fault_of(const struct model *m, struct fault *ret);
/* The same for another run; r may be NULL. */
void fault_of_run(const struct run_facts *r, struct fault *ret);
void fault_done(struct fault *f);

/*
 * The user's line in a run's tracebacks: the innermost frame outside libraries, NULL when there is none. With
 * an explanation, only of a traceback that passes through one of its functions; *ret_op is that function.
 */
const struct place *fault_frame(const struct run_facts *r, const struct explanation *through, const char **ret_op);

#endif
