/*
 * make_log LINES [RUN]: prints the log of a failing job: LINES assertion lines of four kinds, and one
 * line of something else after every 32. RUN lines of a kind (default 96) come before the next kind;
 * 0: one kind only. 3000000 lines are about 500 MB. The same arguments give the same bytes.
 */
#include <stdio.h>
#include <stdlib.h>

static const struct {
	const char *head, *tail;
} kinds[] = {
	{"../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d",
	 "t >= 0 && t < n_classes"},
	{"/pytorch/aten/src/ATen/native/cuda/ScatterGatherKernel.cu:144: operator()",
	 "idx_dim >= 0 && idx_dim < index_size && \"index out of bounds\""},
	{"/opt/conda/conda-bld/pytorch_1656352464346/work/aten/src/ATen/native/cuda/Indexing.cu:1141: "
	 "indexSelectLargeIndex",
	 "srcIndex < srcSelectDimSize"},
	{"../aten/src/ATen/native/cuda/IndexKernel.cu:92: operator()",
	 "-sizes[i] <= index && index < sizes[i] && \"index out of bounds\""},
};

static const char *const others[] = {
	"2024-08-30 17:28:57,137 - trainer - INFO - epoch 3 step 120 loss 1.8841 lr 3.0e-05 mem 10746MB",
	"Epoch 3:  12%|#2        | 120/1000 [00:41<05:03,  2.90it/s, loss=1.88]",
	"[rank0] step 120 tokens 18432 throughput 2112.7 tok/s",
};

int main(int argc, char **argv)
{
	long lines = argc > 1 ? atol(argv[1]) : 1000, run = argc > 2 ? atol(argv[2]) : 96;

	for (long i = 0; i < lines; i++) {
		size_t kind = run > 0 ? (size_t)(i / run) % 4 : 1;
		long thread = run > 0 ? i / (4 * run) * run + i % run : i;

		printf("%s: block: [%ld,0,0], thread: [%ld,0,0] Assertion `%s` failed.\n", kinds[kind].head,
			thread / 128, thread % 128, kinds[kind].tail);
		if (i % 32 == 31)
			puts(others[i / 32 % 3]);
	}
	return 0;
}
