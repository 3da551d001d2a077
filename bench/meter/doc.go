// Package meter measures the GPUs of a host: how fast each one's memory and the links between
// them are, whether they keep and carry data unchanged (GPU, Pair), and how much longer
// arithmetic takes beside a collective (Load, Product). Times are those of the driver's events, so the
// emulator, whose clock Config.Speed models, is measured as hardware is. The kernels are
// kernels/cuda/meter.cu. It is part of the command ringo, and nothing here is promised to other modules.
//
// The trap: a kernel that hangs takes its GPU with it. Waiting ends after GPU.Patience with a *HangError,
// and from then on nothing may be asked of that GPU, not even to give memory back.
package meter
