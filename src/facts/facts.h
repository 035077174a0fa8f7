/*
 * facts: the things that can be known about a failing GPU program, as records.
 *
 * Each struct is one kind of fact with its table (`<name>_record`); tables are in facts.c. Words are
 * the field's own: PyTorch's for tensors, CUDA's for kernels. Unknown is a value everywhere (see
 * record.h).
 */
#ifndef CUWHY_FACTS_H
#define CUWHY_FACTS_H

#include "facts/record.h"

/* A line of source, as Python or a log names it. */
struct place {
	char *file;
	int64_t line;
	char *function;
	char *code; /* the text of the line, trimmed */
};

/* A tensor that an operation consumed. */
struct tensor {
	char *role; /* the operation's own name of the argument: target, input, index */
	char *name; /* the variable or expression in the user's code */
	struct ints shape;
	char *dtype;  /* int64, float32 */
	char *device; /* cpu, cuda:0; the logical device under redirection */
	struct value min, max;
};

/*
 * One device-side assertion: all lines with the same file, line, kernel and condition, folded.
 * Block and thread sets are over all folded lines; sets beyond their bound are marked by `more`.
 */
struct assertion {
	int64_t id;      /* within the run; the same fact told again with higher counts keeps it */
	char *source;    /* path from aten/, c10/ or torch/ on where there is one, then :LINE */
	char *kernel;    /* readable: nll_loss_forward_reduce_cuda_kernel_2d; NULL on Windows */
	char *signature; /* as printed, when longer than the readable name */
	char *condition; /* as printed between the quotes */
	char *text;      /* the runtime values that CUDA_KERNEL_ASSERT_PRINTF adds */
	char *form;      /* cuda, windows, rocm, xpu, dsa, triton, interleaved */
	int64_t rank;
	int64_t count;           /* lines */
	int64_t blocks, threads; /* distinct blocks; distinct (block, thread) pairs seen */
	struct ints first_block, first_thread; /* x, y, z of the first line */
	struct ints pairs; /* the first distinct (block, thread): bx by bz tx ty tz, six a pair */
	bool more;         /* there were more pairs than `pairs` holds */
};

/* A line that names an error: the last line of a traceback, or one that CUDA, NCCL, cuBLAS print. */
struct failure {
	char *type; /* RuntimeError, torch.AcceleratorError; NULL for plain lines */
	char *text; /* first line of the message */
	int64_t code; /* CUDA's number when printed: 59, 710, 719 */
	int64_t rank;
	bool late; /* the text itself warns that the traceback may be of a later call */
};

/* A Python traceback, outermost frame first. */
struct traceback {
	char *type;
	char *text;
	int64_t rank;
	struct list frames; /* struct place */
};

/* A Python process that has torch and the agent in it. */
struct process {
	int64_t pid;
	char *python; /* 3.11.7 */
	char *torch;  /* 2.13.0 */
	char *cuda;   /* of the PyTorch build; NULL for a CPU build */
	struct strs devices;
	int64_t rank;
	int64_t ranks;
};

/*
 * What a check before a call, or the look at an uncaught exception, found wrong with an operand.
 * `seen` tells whether the bad values themselves were looked at: only then can a verdict be certain.
 */
struct finding {
	int64_t pid;
	char *cause; /* one of the contract's causes */
	char *op;    /* torch.nn.functional.cross_entropy */
	struct tensor tensor;
	struct value low, high; /* the range the operand must keep, inclusive */
	struct values bad_values; /* distinct, in order of first appearance, a few */
	int64_t bad_count;        /* elements, exact */
	struct list bad_elements; /* struct element: the first few */
	struct place place;       /* the user's line that makes the call */
	struct list stack;        /* struct place: the user's frames, outermost first */
	char *module;             /* model.encoder.embed_tokens */
	char *detail;             /* what the numbers do not say: shapes, dtypes, devices, in words */
	char *expect;             /* what the operation wants there, in words */
	bool seen;
	bool silent; /* this fault raises nothing on the CPU */
};

struct element {
	struct ints at;
};

/*
 * What an operand held when it was last looked at: one for each operand of each call site, told now and
 * then while the program runs. Counts are exact over `elements`; unknown where the tensor could not be read.
 */
struct operand {
	int64_t pid;
	char *op;             /* as in a finding; NULL for what a DataLoader yields */
	struct tensor tensor; /* min and max leave NaN out, and keep infinities */
	struct value low, high; /* the range it must keep, inclusive; VALUE_NONE: anything goes */
	int64_t elements;
	bool bad;          /* it breaks the operation's rule */
	int64_t bad_count; /* elements outside the range */
	int64_t nans, infs, zeros;
	struct ints histogram; /* finite elements in bins of equal width from min to max */
	struct place place;   /* the user's line that makes the call */
	char *module;
	int64_t calls; /* of this call site so far */
};

/* Lines of a source file as they were when the program ran: what a replay elsewhere can show. */
struct excerpt {
	char *file;
	int64_t first; /* line number of lines.v[0], from 1 */
	struct strs lines;
};

/* How often index-like operands were looked at and were in range: what clears the data. */
struct checked {
	int64_t pid;
	char *op;
	int64_t calls;
	int64_t unseen; /* operands on a device that could not be looked at */
};

/* A walk over the data that feeds the failing operation. */
struct scan {
	char *loader;  /* the name in the user's code */
	char *dataset; /* likewise, else its class */
	int64_t epoch, batch;
	struct ints samples;   /* bad samples of the failing batch, as indices of the loader's dataset */
	struct values values;  /* distinct bad values over all samples, a few */
	struct ints found;     /* the first bad samples over the whole dataset */
	int64_t total_bad_samples;
	int64_t scanned, size; /* samples looked at, samples there are */
	bool complete;
	char *field;   /* which part of a sample it is: [1], ["mask"] */
	char *how;     /* how the operand was followed back to the samples, in words */
	char *problem; /* why there is no answer, in words */
	int64_t errors; /* samples that raised an exception of their own */
};

/* An exception that reached the top, with the frames of the user's own code. */
struct raised {
	int64_t pid;
	char *type;
	char *text;
	struct list frames; /* struct place, outermost first, libraries left out */
};

/* One run of the inferior. */
struct run {
	char *name; /* main, cpu_rerun, blocking_launch */
	struct strs argv;
	char *cwd;
	int64_t pid;
};

struct ended {
	char *name; /* of the run */
	int64_t exit_status;
	int64_t signal;
	double seconds;
	char *stopped; /* why cuwhy ended it, if it did */
};

/* How a checklist step ended; also sent when it starts (status running). */
struct step_result {
	char *id;
	char *status; /* running, found, clean, skipped, failed */
	char *finding;
	double seconds;
};

/* What this machine has. */
struct machine {
	char *driver;
	struct strs gpus;
	char *note;
};

/* A line for the reader that is not a fact about the program: the agent's or cuwhy's own trouble. */
struct note {
	char *text;
};

extern const struct record place_record, tensor_record, assertion_record, failure_record,
	traceback_record, process_record, finding_record, element_record, checked_record, scan_record,
	raised_record, operand_record, excerpt_record, run_record, ended_record, step_result_record, machine_record, note_record;

#endif
