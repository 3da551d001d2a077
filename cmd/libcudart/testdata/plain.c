// plain is a program in C: the runtime and the driver side by side, kernels as PTX, and a function that is not carried out.
#include <stdio.h>
#include <string.h>

#include "cuda.h"
#include "cuda_runtime.h"

#define WANT(condition)                                                                     \
	do {                                                                                \
		if (!(condition)) {                                                         \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			return 1;                                                           \
		}                                                                           \
	} while (0)

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry set(.param .u64 p) { .reg .b64 %a; ld.param.u64 %a, [p]; cvta.to.global.u64 %a, %a; st.global.u32 [%a], 42; ret; }\n";

int main(void)
{
	int device = -1, count = 0, got = 0, version = 0;
	CUdeviceptr p = 0;
	void *q = NULL, *f = NULL;
	CUmodule module;
	CUfunction set;
	WANT(cudaGetDeviceCount(&count) == cudaSuccess && count == 2);
	WANT(cudaSetDevice(1) == cudaSuccess && cudaGetDevice(&device) == cudaSuccess && device == 1);
	WANT(cuMemAlloc(&p, 4) == CUDA_SUCCESS);
	WANT(cuModuleLoadData(&module, ptx) == CUDA_SUCCESS && cuModuleGetFunction(&set, module, "set") == CUDA_SUCCESS);
	void *args[] = {&p};
	WANT(cuLaunchKernel(set, 1, 1, 1, 1, 1, 1, 0, 0, args, NULL) == CUDA_SUCCESS);
	WANT(cudaMemcpy(&got, (void *)p, 4, cudaMemcpyDefault) == cudaSuccess && got == 42);
	WANT(cudaFree((void *)p) == cudaSuccess && cuModuleUnload(module) == CUDA_SUCCESS);
	WANT(cuGetProcAddress("cuMemAlloc", &f, 12040, 0, NULL) == CUDA_SUCCESS && f == (void *)cuMemAlloc);
	WANT(cuGetProcAddress("cuNothing", &f, 12040, 0, NULL) == CUDA_SUCCESS && !f);
	WANT(cudaRuntimeGetVersion(&version) == cudaSuccess && version / 1000 >= 12);

	// A library of no context, whose kernel is launched on both devices.
	CUlibrary library;
	CUkernel kernel;
	WANT(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0) == CUDA_SUCCESS);
	WANT(cuLibraryGetKernel(&kernel, library, "none") == CUDA_ERROR_NOT_FOUND);
	WANT(cuLibraryGetKernel(&kernel, library, "set") == CUDA_SUCCESS);
	for (int d = 0; d < 2; d++) {
		WANT(cudaSetDevice(d) == cudaSuccess && cudaMalloc((void **)&p, 4) == cudaSuccess);
		WANT(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, 0, args, NULL) == CUDA_SUCCESS);
		got = 0;
		WANT(cudaMemcpy(&got, (void *)p, 4, cudaMemcpyDefault) == cudaSuccess && got == 42);
		WANT(cudaFree((void *)p) == cudaSuccess);
	}
	WANT(cuLibraryUnload(library) == CUDA_SUCCESS && cuLibraryUnload(library) == CUDA_ERROR_INVALID_HANDLE);

	// What nvcc of CUDA 13 has programs do: a fat binary is registered before main, and kernels are launched by handles.
	void **__cudaRegisterFatBinary(void *);
	void __cudaUnregisterFatBinary(void **);
	void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);
	cudaError_t __cudaGetKernel(cudaKernel_t *, const void *), __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t);
	unsigned char image[16 + 64 + (sizeof ptx + 7) / 8 * 8] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, [16] = 1, 0, 1, 1, 64, [16 + 28] = 70};
	unsigned long long size = sizeof image - 16, text = size - 64;
	memcpy(image + 8, &size, 8), memcpy(image + 16 + 8, &text, 8), memcpy(image + 16 + 64, ptx, sizeof ptx);
	struct { unsigned magic, version; const void *image; void *more; } wrapper = {0x466243b1, 1, image, NULL};
	static const char host = 0; // a kernel's address on the host stands for it
	void **fatbin = __cudaRegisterFatBinary(&wrapper);
	cudaKernel_t handle;
	__cudaRegisterFunction(fatbin, &host, "set", "set", -1, NULL, NULL, NULL, NULL, NULL);
	WANT(__cudaGetKernel(&handle, &host) == cudaSuccess && cudaMalloc((void **)&p, 4) == cudaSuccess);
	WANT(__cudaLaunchKernel(handle, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, NULL) == cudaSuccess);
	got = 0;
	WANT(cudaMemcpy(&got, (void *)p, 4, cudaMemcpyDefault) == cudaSuccess && got == 42 && cudaFree((void *)p) == cudaSuccess);
	WANT(cudaGetKernel(&handle, &host) == cudaSuccess && cudaGetKernel(&handle, &host + 1) == cudaErrorInvalidDeviceFunction);
	__cudaUnregisterFatBinary(fatbin);

	cudaError_t cudaMallocArray(void **, const void *, size_t, size_t, unsigned);
	for (int i = 0; i < 2; i++)
		WANT(cudaMallocArray(&q, NULL, 1, 1, 0) == cudaErrorNotSupported);
	WANT(cudaGetLastError() == cudaErrorNotSupported);

	// What a runtime of NVIDIA asks for, and machine code in place of PTX.
	const void *table;
	WANT(cuGetExportTable(&table, (const CUuuid *)"0123456789abcde") == CUDA_ERROR_NOT_FOUND);
	static const unsigned char fat[] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 64, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 1, 64, [44] = 90, [79] = 0};
	WANT(cuModuleLoadData(&module, fat) == CUDA_ERROR_NO_BINARY_FOR_GPU);
	WANT(cudaDeviceReset() == cudaSuccess);
	puts("all is right");
	return 0;
}
