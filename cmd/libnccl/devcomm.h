// devcomm.h is how device communicators are laid out.
#pragma once
#include "nccl.h"

// plan checks what a program wants of a device communicator of some ranks, and gives everything its place in
// the resource window, whose length it returns. It returns 0 where it sets why, to what is wrong. The
// version of the headers that the program was compiled with decides the layout of *out.
size_t plan(const ncclDevCommRequirements_t *wanted, int ranks, int rank, void *out, unsigned *version, const char **why);

// complete writes the resource window and the table of windows to a device communicator of plan.
void complete(void *out, unsigned version, uintptr_t window, uintptr_t table, const void *record);

// window_of is a device communicator's resource window.
uintptr_t window_of(const void *devcomm);

// The requirements of what NCCL's kernels use.
void want_lsa_barriers(int ranks, int barriers, ncclLsaBarrierHandle_t *handle, ncclDevResourceRequirements_t *out);
void want_gin_barriers(int barriers, ncclGinBarrierHandle_t *handle, ncclDevResourceRequirements_t *out);
void want_ll(int blocks, int slots, ncclLLA2AHandle_t *handle, ncclDevResourceRequirements_t *out);
