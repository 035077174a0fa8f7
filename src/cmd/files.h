/*
 * files: where cuwhy's own files are: the agent, the demos, and the sessions of this user.
 */
#ifndef CUWHY_FILES_H
#define CUWHY_FILES_H

#include "base/util.h"

/* The agent's folder: beside the program in a build tree, else where it was installed. Caller frees. */
char *files_agent(void);
/* The folder of the demo scripts, likewise. Caller frees. */
char *files_demo(void);

/*
 * A new session's path in $XDG_STATE_HOME/cuwhy (made if need be), with a readable name: date, time, and
 * what the command calls its program; the number is told from 2 on. NULL when there is no such folder. Caller frees.
 */
char *files_new_session(char *const *argv, int number, struct error *e);

#endif
