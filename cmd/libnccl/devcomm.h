// devcomm.h is how device communicators are laid out.
#include "nccl.h"

// plan checks what a program wants of a device communicator of some ranks, and gives everything its place in
// the resource window, whose length it returns. It returns 0 where it sets why, to what is wrong.
size_t plan(const ncclDevCommRequirements_t *wanted, int ranks, int rank, ncclDevComm_t *out, const char **why);

// The requirements of what NCCL's kernels use.
void want_lsa_barriers(int ranks, int barriers, ncclLsaBarrierHandle_t *handle, ncclDevResourceRequirements_t *out);
void want_gin_barriers(int barriers, ncclGinBarrierHandle_t *handle, ncclDevResourceRequirements_t *out);
void want_ll(int blocks, int slots, ncclLLA2AHandle_t *handle, ncclDevResourceRequirements_t *out);
