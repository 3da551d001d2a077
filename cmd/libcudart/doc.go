// Package libcudart has the CUDA runtime of emulated GPUs, and what it takes to compile programs for it, as files that
// are not Go:
//
//   - src: libcudart.so.12 and .13, in C, a thin translation to the driver's interface of libcuda.so.1 (cmd/libcuda).
//     scripts/libcudart builds them.
//   - include: cuda_runtime.h, cuda.h and their companions, of our own writing, for C, C++ and clang's CUDA.
//   - bin: nvcc in front of clang, and what clang looks for beside it.
//   - count: a library that counts calls of NCCL, which ringo emulate loads before the program's.
//
// scripts/cuda-kit puts all of it into one folder. The runtime is C and not Go because a process has one emulator: that
// of libcuda.so.1, which libnccl.so.2 uses too. So a call costs no second runtime of Go. There is nothing in it for Go,
// and nothing here is promised to other modules.
package libcudart
