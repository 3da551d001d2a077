// Package ptxcheck looks for races and other faults of GPU kernels, without a GPU: it runs
// kernels in PTX on emulated GPUs under many seeds, each another order of threads and of
// stores that become visible, and reports each fault with its place and a short schedule.
// "ringo ptx check" is the same as a command.
//
// The trap: nothing is found in code that no launch reaches. Choose arguments, grids and
// several GPUs so that threads meet; a kernel that synchronises with the one before it, or
// that counts epochs, wants two launches.
//
// # What is looked for
//
// Two accesses of different threads to the same byte of which one is a store, and that nothing
// orders, are a race: between the threads of a warp, of a block, of a GPU, of several GPUs. The order is that
// of PTX's memory model, so a race is found under almost every seed, also if it did no harm:
// a flag that is stored without a release of what was stored before makes a race of the
// reader's loads. Besides: addresses outside of all memory, loads of what nothing wrote,
// deadlocks, barriers that not all threads of a block reach, kernels that need more
// blocks at once than fit, runs without an end, and contents that are not what Case.Wants says.
//
// What PTX does not promise is a race also where hardware happens to do it. A common one: all threads of a block make
// their stores and a fence.acq_rel, wait at a barrier, and then one of them stores a relaxed flag. PTX wants the fence
// after the barrier, in the thread that stores the flag, where it orders what all threads have stored before the
// barrier; or a flag that is stored with .release; or fence.sc, which __threadfence is, here and behind the reader's
// look at the flag, for these have an order of their own.
//
// A Report without findings means that these launches have no fault that these seeds reach. Package
// internal/emu/weakmem lists the faults that cannot be seen. The most common reason: only the last few
// accesses to each 8 bytes are remembered.
//
// # Values
//
// Arguments, counts and contents are expressions: numbers, + - * / % and parentheses, with
//
//	rank, gpus       the number of the GPU, and how many there are
//	i                in contents: the number of the element
//	NAME, NAME@GPU   the address of a buffer on this GPU, or on another
//	pick(A, B, …)    the value with the number of the GPU
//
// a % b has the sign of b, so flag@((rank-1)%gpus) is a neighbour's. An argument has the type
// that the kernel declares, another one as TYPE:VALUE. {V, V, …} are the fields of a struct,
// laid out as in C, in which numbers need a TYPE and NAME@* is the addresses of a buffer on all GPUs.
// Contents may be several expressions with commas between them, which are repeated. Types are u8, u16,
// u32, u64, s8 to s64, f16, bf16, e4m3, e5m2, f32, f64, and ptr, an address.
package ptxcheck
