// A CUDA runtime whose cudaSetDevice makes no context, as those before 12.
static __thread int current;
int cudaSetDevice(int device) { return current = device, 0; }
int cudaGetDevice(int *device) { return *device = current, 0; }
