// Package grid carries out one rank's part of a collective on its GPU, for package core/gpucomm. The interpreter
// (kernels/cuda/run.cu) does on the GPU what package engine does on the host: the rounds, steps and slices of any
// schedule, with a block of threads for each lane. Direct kernels (direct.cu) carry out small and middle sizes in one
// or two hops, norm kernels (norm.cu) all-reduces and RMSNorm, messages (messages.h) independent sends and receives
// side by side, and window kernels (window.cu) and copy engines work in the ranks' own registered buffers. It is part
// of a communicator, and nothing here is promised to other modules.
//
// The trap: no Run method waits for the operation that it queues on the caller's stream. Later errors appear in the
// Control, which the owner has to watch.
package grid
