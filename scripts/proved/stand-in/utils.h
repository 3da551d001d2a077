// SGLang's custom_all_reduce.cuh includes its utils.h, which needs PyTorch, for this.
#pragma once
#include <stdio.h>
#define CHECK_CUDA_SUCCESS(call)                                                   \
	do {                                                                       \
		if ((call) != cudaSuccess)                                         \
			printf("%s:%d: a call failed\n", __FILE__, __LINE__);      \
	} while (0)
