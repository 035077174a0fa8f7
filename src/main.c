/* argv to verb, nothing else. */
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"

const struct cmd *const cmds[] = {&cmd_run, &cmd_explain, &cmd_report, &cmd_demo, NULL};

static void overview(void)
{
	puts("cuwhy: why did my GPU program die with \"device-side assert triggered\"?\n");
	for (size_t i = 0; cmds[i]; i++)
		printf("  cuwhy %-44s %s\n", cmds[i]->usage, cmds[i]->summary);
	puts("\n`cuwhy VERB --help` tells more. Start with: cuwhy python train.py");
}

/* A descriptor below 3 that is closed would be taken by the next file we open, and be written to. */
static void fill_standard_descriptors(void)
{
	int fd;

	while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd < 3)
		;
	if (fd >= 3)
		close(fd);
}

int main(int argc, char **argv)
{
	const struct cmd *c = &cmd_run;
	struct options o;
	struct error e = {{0}};
	int skip = 0, status;

	fill_standard_descriptors();
	setlocale(LC_ALL, "");
	for (size_t i = 0; argc > 1 && cmds[i]; i++) {
		if (strcmp(argv[1], cmds[i]->name) == 0) {
			c = cmds[i];
			skip = 1;
		}
	}
	if (!options_parse(&o, c, argc - skip, argv + skip, &e)) {
		complain("%s", e.text);
		status = c == &cmd_run ? EXIT_OURS : EXIT_UNUSABLE;
	} else if (o.version) {
		puts("cuwhy " PACKAGE_VERSION);
		status = 0;
	} else if (o.help || argc == 1) {
		skip ? options_help(c) : overview();
		status = argc == 1 ? EXIT_UNUSABLE : 0;
	} else {
		status = c->run(&o);
	}
	options_done(&o);
	if (fflush(stdout) != 0 && status == 0)
		status = EXIT_UNUSABLE;
	return status;
}
