/* device_launch_parameters.h is a part of cuda_runtime.h: threadIdx and its like. */
#include "cuda_runtime.h"
