// devcomm.h declares the functions that lay out device communicators.
#pragma once
#include "nccl.h"

// plan checks a program's requirements of a device communicator, gives each resource its place in the resource window,
// and returns the window's length in bytes. On an error it sets *why to the reason and returns 0. The version of the
// headers that the program was compiled with decides the layout of *out.
size_t plan(const ncclDevCommRequirements_t *wanted, int ranks, int rank, void *out, unsigned *version, const char **why);

// complete writes the resource window and the table of windows into a device communicator that plan has filled.
void complete(void *out, unsigned version, uintptr_t window, uintptr_t table, const void *record);

// window_of is a device communicator's resource window.
uintptr_t window_of(const void *devcomm);

// Requirements of the barriers and exchanges of NCCL's kernels. Each fills in *handle and *out.
void want_lsa_barriers(int ranks, int barriers, ncclLsaBarrierHandle_t *handle, ncclDevResourceRequirements_t *out);
void want_gin_barriers(int barriers, ncclGinBarrierHandle_t *handle, ncclDevResourceRequirements_t *out);
void want_ll(int blocks, int slots, ncclLLA2AHandle_t *handle, ncclDevResourceRequirements_t *out);
