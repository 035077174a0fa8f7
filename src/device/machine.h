/*
 * machine: what this machine has: GPUs and driver, through NVML opened at run time, so that one binary
 * serves machines with and without a GPU.
 */
#ifndef CUWHY_MACHINE_H
#define CUWHY_MACHINE_H

#include "facts/facts.h"

/* Fills ret, which is overwritten; the caller owns what it holds. No GPU: gpus is empty, note says why. */
void machine_facts(struct machine *ret);

#endif
