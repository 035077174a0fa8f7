/* demo: runs a bundled failing training script, each of them one that a beginner would write. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/files.h"
#include "cmd/run.h"

static const struct {
	const char *name, *about;
} demos[] = {
	{"mnist-labels", "digit labels of shape [[0], [1], [2]]: the loss wants [0, 1, 2]"},
	{"label-ten", "ten classes numbered 1 to 10: the target 10 does not exist"},
	{"one-hot", "one-hot rows given where class numbers belong"},
	{"corrupt-csv", "a CSV file in which a few labels are broken"},
	{"batch-mismatch", "inputs and targets of different batch size"},
	{"last-batch", "a last batch of one sample under BatchNorm"},
	{"wrong-device", "the model on the GPU, the inputs left on the CPU"},
	{"big-token", "token ids beyond the vocabulary of the embedding"},
	{"bce-range", "targets outside 0 to 1 for binary cross entropy"},
	{"empty-batch", "a filter that leaves an empty batch"},
};

static void list_demos(void)
{
	for (size_t i = 0; i < COUNT(demos); i++)
		printf("  %-15s %s\n", demos[i].name, demos[i].about);
	puts("\nRun one with: cuwhy demo NAME");
}

/* $PYTHON, or python3: the same choice as the README's commands make. */
static const char *python(void)
{
	const char *named = getenv("PYTHON");

	return named && *named ? named : "python3";
}

static int demo(struct options *o)
{
	size_t i = 0;

	if (o->nargs == 0) {
		list_demos();
		return 0;
	}
	while (i < COUNT(demos) && strcmp(demos[i].name, o->args[0]) != 0)
		i++;
	if (i == COUNT(demos)) {
		complain("%s: no demo is called so; `cuwhy demo` lists them", o->args[0]);
		return EXIT_UNUSABLE;
	}
	char *folder = files_demo(), *script = xasprintf("%s/%s.py", folder, demos[i].name);
	char *argv[] = {(char *)python(), script, NULL};
	int status = EXIT_UNUSABLE;

	if (access(script, R_OK) != 0) {
		complain("%s: the demo's script is missing; install cuwhy again", script);
	} else {
		o->args = argv;
		o->nargs = 2;
		status = run_command(o);
	}
	free(script);
	free(folder);
	return status;
}

const struct cmd cmd_demo = {
	"demo", VERB_DEMO, "demo [OPTIONS] [NAME]", "run a bundled failing training script (no name: list them)",
	"The scripts need a Python with torch: $PYTHON, else python3.\n", demo,
};
