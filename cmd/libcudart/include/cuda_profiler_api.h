/* cuda_profiler_api.h is a part of cuda_runtime_api.h. */
#include "cuda_runtime_api.h"
