/* cuda_fp8.h is there for programs that include it. It has no types, and does not say that it had: __CUDA_FP8_TYPES_EXIST__. */
#include "cuda_bf16.h"
