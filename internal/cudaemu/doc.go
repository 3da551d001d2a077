// Package cudaemu is the CUDA driver in Go, for machines without a GPU. A
// Machine has any number of devices that execute PTX step by step under a seed,
// and takes the freedoms that hardware takes. It answers as a real driver does,
// result for result (TestBehaviour has the questions), and reports what
// hardware lets pass.
//
// # How it is built
//
// Everything that is queued is an op, and ops form a graph: each waits for some
// others. Streams, events, captured graphs are nothing but ways to say what an
// op comes after: a stream remembers its last op, an event the op at which it
// was recorded, a launch of a graph makes an op of each node. An executor takes
// the ops that wait for nothing, in an order that the seed decides, and has each
// make a step: a copy is done, a kernel begins, a wait looks at memory again.
// Kernels run in package simt, all at once and interleaved; memory is package
// weakmem's. All of it is under one lock. The executor has a goroutine of its own,
// and host functions another; a lazy machine has neither: it advances on the
// goroutine of a caller that waits, and so repeats exactly.
//
// Each op has a clock of what happened before it, which it hands to those that
// wait for it, and to the host when a call has waited for it or seen it done. So
// a missing event wait or a missing synchronisation is a race like a missing
// fence in a kernel, and found even if the order was right by luck.
//
// Device memory is anonymous files, mapped here and by other processes that get
// a handle or a descriptor. An IPC handle names process and descriptor, which are
// opened by way of /proc; the first page of each file says what it is, so that
// wrong and stale handles are found. Device addresses lie above all addresses of
// processes and are never used twice; between allocations is a gap.
//
// # What it models
//
// Primary contexts with counts of references, the stack of current contexts of
// each OS thread, errors that stay until a context is reset. Device, pinned and
// registered memory, peer access for each direction, IPC memory and events, the
// virtual-memory API with file descriptors. Legacy, per-thread, blocking and
// non-blocking streams, priorities, events, host functions, stream memory
// operations. Capture with its modes and its forbidden calls, graphs with all
// nodes that these can have, user objects. Modules from PTX, occupancy, the
// limits of launches, cooperative launches; blocks that do not fit wait, so that
// a kernel which needs more of them at once hangs here too and is reported.
// Older drivers, odd peer matrices, small devices; calls that fail, kernels that
// die, devices that are lost. When a process dies, memory that others have opened
// stays as it is until they close it, as on hardware.
//
// # Where it is stricter than hardware
//
//   - Memory: see package weakmem. Besides, allocations are aligned to 256 bytes
//     and to no more, each byte behind them is out of bounds, freed addresses do
//     not come back, fresh memory is unwritten, and copies check as kernels do.
//   - Independent ops happen in any order, copies may be held back (CopyDelay).
//   - MemcpyHtoD of pageable memory, and MemcpyDtoD and MemsetD8 within devices, return
//     before they are done, always.
//   - What is unmapped must be mapped.
//   - Host functions share one thread, and may not call the driver.
//   - What the program has not released is an error of Close.
//   - Arguments that crash a real driver (handles of another kind, handles
//     destroyed, unknown addresses) are errors.
//
// # Where it knows more than PTX
//
// Strong vector accesses by neighbouring threads of a warp move aligned lines of
// 128 bytes as a whole (weakmem.Config.Lines), if all devices are of capability 7.0
// or newer. PTX does not promise it; that hardware does it is what the low-latency
// protocols of collective libraries rest on.
//
// # What it does not model
//
// Time: events of a machine that is not lazy measure the emulator, not a device.
// Races between processes, and between kernels and the host's own accesses of
// pinned memory, which it cannot see; the memory of another process may hold
// anything and counts as written. The host is one thread: what one call has
// waited for, all later calls come after. Caches, bandwidth, clocks, power.
// Contexts other than primary ones, pageable memory in asynchronous copies, managed memory,
// memory pools, multicast, textures, dynamic parallelism, cubins, linking. Local
// memory and registers are unlimited. Memory of one allocation that is mapped at
// two addresses is two memories to the race detector.
//
// On macOS it works within one process; on other systems New says no.
package cudaemu
