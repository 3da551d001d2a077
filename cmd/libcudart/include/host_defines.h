/* host_defines.h has the words that say where a function runs and where a variable lies. */
#ifndef RINGO_HOST_DEFINES_H
#define RINGO_HOST_DEFINES_H

#if defined(__CUDA__) || defined(__CUDACC__)
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
/* clang 19 has no attribute for the size of clusters, so a kernel with one cannot be launched. */
#define __cluster_dims__(...) __attribute__((enable_if(false, "launch it with cudaLaunchAttributeClusterDimension: this compiler has no __cluster_dims__")))
#define __grid_constant__ __attribute__((grid_constant))
#else
#define __host__
#define __device__
#endif

#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))
#ifndef __cplusplus
#define __noinline__ __attribute__((noinline))
#endif
/* With per-thread default streams functions are twins whose stream 0 is the thread's own, under the same names. */
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define RINGO_PTSZ(name) __asm__(#name "_ptsz")
#define RINGO_PTDS(name) __asm__(#name "_ptds")
#else
#define RINGO_PTSZ(name)
#define RINGO_PTDS(name)
#endif

#define CUDARTAPI
#define CUDART_CB

#endif
