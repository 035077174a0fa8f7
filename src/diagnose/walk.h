/*
 * walk: runs the checklist's steps in their order against a live inferior. What is already known is not
 * found out twice: a step that can add nothing is skipped with that reason. No step ends silently.
 */
#ifndef CUWHY_WALK_H
#define CUWHY_WALK_H

#include "capture/live.h"
#include "diagnose/steps.h"

struct walk_options {
	const struct strs *only, *not; /* step ids; only empty: all */
	double (*limit)(void *user, const struct step *s); /* seconds */
	void *user;
};

/* Runs one step, whatever earlier runs of it told. */
void walk_step(struct live *v, const struct model *m, const struct step *s, const struct walk_options *o);
void walk_all(struct live *v, const struct model *m, const struct walk_options *o);

#endif
