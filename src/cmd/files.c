#include "cmd/files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "capture/launch.h"

/* The folder that this executable lies in; "" when it cannot be told. */
static void own_folder(char out[static PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);

	out[n > 0 ? n : 0] = '\0';
	char *slash = strrchr(out, '/');

	if (slash)
		*slash = '\0';
}

static char *find(const char *name, const char *installed)
{
	char folder[PATH_MAX];

	own_folder(folder);
	char *beside = xasprintf("%s/%s", folder, name);

	if (access(beside, R_OK) == 0)
		return beside;
	free(beside);
	return xstrdup(installed);
}

char *files_agent(void)
{
	return find("agent", PKGLIBDIR "/agent");
}

char *files_demo(void)
{
	return find("demo", PKGDATADIR "/demo");
}

static bool make_folders(char *path, struct error *e)
{
	for (char *slash = strchr(path + 1, '/'); ; slash = strchr(slash + 1, '/')) {
		if (slash)
			*slash = '\0';
		bool ok = mkdir(path, 0700) == 0 || errno == EEXIST;

		if (!ok)
			error_set(e, "cannot make the folder %s for sessions: %s", path, strerror(errno));
		if (slash)
			*slash = '/';
		if (!ok || !slash)
			return ok;
	}
}

/* train of `python -u train.py --lr 1`: what the user would call this program. */
static void program_name(char *const *argv, char out[static 64])
{
	const char *name = "program";

	for (size_t i = 0; argv[i]; i++) {
		const char *slash = strrchr(argv[i], '/'), *word = slash ? slash + 1 : argv[i];

		if (*word == '-' || *word == '\0')
			continue;
		name = word;
		if (!launch_is_python(word))
			break;
	}
	size_t n = 0;

	for (const char *p = name; *p && n < 40; p++)
		out[n++] = (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
			   strchr("._-", *p) ? *p : '_';
	out[n] = '\0';
	if (ends_with(out, ".py"))
		out[n - 3] = '\0';
}

char *files_new_session(char *const *argv, int number, struct error *e)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char when[32], name[64];
	time_t now = time(NULL);
	struct tm tm;
	char *folder, *path = NULL;

	if (state && state[0] == '/')
		folder = xasprintf("%s/cuwhy", state);
	else if (home && home[0] == '/')
		folder = xasprintf("%s/.local/state/cuwhy", home);
	else {
		error_set(e, "neither XDG_STATE_HOME nor HOME is set; name a file with --session");
		return NULL;
	}
	if (make_folders(folder, e)) {
		localtime_r(&now, &tm);
		strftime(when, sizeof when, "%Y-%m-%d_%H%M%S", &tm);
		program_name(argv, name);
		path = number > 1 ? xasprintf("%s/%s_%s_%d.cuwhy", folder, when, name, number) :
		       xasprintf("%s/%s_%s.cuwhy", folder, when, name);
	}
	free(folder);
	return path;
}
