/* run: what `cuwhy run` does, for the other verbs that run something. */
#ifndef CUWHY_RUN_H
#define CUWHY_RUN_H

#include "cmd/cmd.h"

/* Runs o->args (o->args[o->nargs] is NULL). Returns the exit status of `cuwhy run`. */
int run_command(struct options *o);

#endif
