// Loads kernels from files by the driver and runs each: load FILE..., see TestImages.
#include <cstdio>
#include <cuda.h>

int main(int count, char **files)
{
	CUcontext c;
	CUmodule m;
	CUfunction f;
	CUdeviceptr p;
	cuInit(0);
	cuDevicePrimaryCtxRetain(&c, 0);
	cuCtxSetCurrent(c);
	cuMemAlloc(&p, 4);
	for (int i = 1; i < count; i++) {
		int v = 0;
		void *args[] = {&p};
		CUresult result = cuModuleLoad(&m, files[i]);
		if (result || (result = cuModuleGetFunction(&f, m, "set")))
			return printf("%s: %d\n", files[i], result);
		cuMemsetD8(p, 0, 4);
		cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, 0, args, nullptr);
		cuMemcpyDtoH(&v, p, 4);
		printf("%d ", v);
		cuModuleUnload(m);
	}
	printf("absent %d\n", cuModuleLoad(&m, "no such file"));
	cuMemFree(p);
}
