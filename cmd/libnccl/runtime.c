// runtime.c asks the program's CUDA runtime, if one is loaded that has the function, for the calling thread's device.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "thread.h"

// find keeps the path of the runtime's library. Wheels put a hash into its name.
static int find(struct dl_phdr_info *info, size_t size, void *path)
{
	const char *base = strrchr(info->dlpi_name, '/');
	(void)size;
	if (strncmp(base ? base + 1 : info->dlpi_name, "libcudart", 9))
		return 0;
	return snprintf(path, PATH_MAX, "%s", info->dlpi_name) < PATH_MAX;
}

int runtime_device(void)
{
	char path[PATH_MAX] = "";
	int device = -1;
	void *library = dl_iterate_phdr(find, path) ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
	if (!library)
		return -1;
	int (*get)(int *) = (int (*)(int *))dlsym(library, "cudaGetDevice");
	if (!get || get(&device))
		device = -1;
	dlclose(library);
	return device;
}
