// check.h ends a program whose call has failed, and says where.
#pragma once
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                                         \
	do {                                                                                                \
		cudaError_t result_ = (call);                                                               \
		if (result_ != cudaSuccess) {                                                               \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(result_)); \
			exit(1);                                                                            \
		}                                                                                           \
	} while (0)
#define WANT(condition)                                                                             \
	do {                                                                                        \
		if (!(condition)) {                                                                 \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);     \
			exit(1);                                                                    \
		}                                                                                   \
	} while (0)
