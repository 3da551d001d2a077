// Package cudaemu is the CUDA driver in Go, for tests and programs on machines without a
// GPU. A Machine has any number of devices that execute PTX step by step under a seed,
// and reorders work and memory as hardware may. It gives a real driver's results
// (TestBehaviour compares them), and reports errors that hardware does not notice.
//
// The trap: only a machine with Config.Lazy repeats exactly under the same seed.
//
// # How it is built
//
// Queued work is an op, and ops form a graph: each waits for some others. Streams,
// events and captured graphs only determine these edges: a stream remembers its last
// op, an event the op at which it was recorded, a launch of a graph makes an op of each
// node. An executor takes the ops that wait for nothing, in an order that the seed
// decides, and does a step of each: a copy is done, a kernel begins, a wait looks at
// memory again. Kernels run in package simt, all at once and interleaved; memory is
// package weakmem's. One lock guards all. The executor has a goroutine of its own, and
// host functions another; a lazy machine has neither: it advances on the goroutine of a
// caller that waits, and so repeats exactly.
//
// Each op has a vector clock of what happened before it. It passes the clock to ops
// that wait for it, and to the host when a call has waited for it or seen it done. So a
// missing event wait or synchronisation is a race, like a missing fence in a kernel, and
// is found even if the order was right by luck.
//
// Device memory is anonymous files, mapped here and by other processes that get
// a handle or a descriptor. An IPC handle names process and descriptor, which are
// opened by way of /proc; the last page of each file identifies it, so that
// wrong and stale handles are found. Device addresses lie above all addresses of
// processes; between allocations is a gap. Addresses and handles that a program gave
// back are the next that it gets, see Config.FreshAddresses; those of MemAllocAsync never come back.
//
// # What it models
//
// Primary contexts with counts of references, the stack of current contexts of
// each OS thread, errors that stay until a context is reset. Device, pinned and
// registered memory, peer access for each direction, IPC memory and events, the
// virtual-memory API with file descriptors. Legacy, per-thread, blocking and
// non-blocking streams, priorities, events, host functions, stream memory
// operations. Capture with its modes and its forbidden calls, graphs with all
// nodes that these can have, child and conditional graphs, updates of executable ones,
// user objects. Modules from PTX, occupancy, the
// limits of launches, cooperative launches; blocks that do not fit wait, so that
// a kernel which needs more of them at once hangs here too and is reported.
// Older drivers, odd peer matrices, small devices; calls that fail, kernels that
// die, devices that are lost. When a process dies, memory that others have opened
// stays as it is until they close it, as on hardware.
//
// # Where it is stricter than hardware
//
//   - Memory: see package weakmem. Besides, allocations are aligned to 256 bytes
//     and to no more, each byte after their end is out of bounds, fresh memory is
//     unwritten, and copies check as kernels do.
//   - Memory that a process has freed (of the virtual-memory API: whose mappings and handles that process has given
//     back, and those that it has imported from itself) is out of bounds for the mappings that other processes still
//     have of it.
//   - What was given back comes again at once: handles, and device addresses.
//   - Independent ops happen in any order, copies may be held back (CopyDelay).
//   - MemcpyHtoD of pageable memory, and MemcpyDtoD and MemsetD8 within devices, return
//     before they are done, always.
//   - Unmapping memory that is not mapped is an error.
//   - Host functions share one thread, and may not call the driver.
//   - Objects that the program has not released are an error of Close.
//   - Arguments that crash a real driver (handles of another kind, handles
//     destroyed, unknown addresses) are errors.
//
// # Where it knows more than PTX
//
// Strong vector accesses by neighbouring threads of a warp move aligned lines of
// 128 bytes as a whole (weakmem.Config.Lines) in the device's own memory and over NVLink,
// if the device is of capability 7.0 or newer. PTX does not promise it; that hardware does
// it is what the low-latency protocols of collective libraries rest on. Over PCIe
// (Config.Link), and in host memory, a line goes in words of 8 bytes in any order.
//
// # What it does not model
//
// Time, but for Config.Speed: events of a machine that is not lazy measure the emulator, not a device.
// Races between processes, and between kernels and the host's own accesses of
// pinned memory, which it cannot see; the memory of another process may hold
// anything and counts as written. The host counts as one thread: all later calls come
// after work for which one call has waited. Caches, bandwidth, clocks, power.
// Contexts that do not reach each other's memory on one device, managed memory,
// memory pools, multicast, textures, dynamic parallelism, cubins, linking, tensor maps, products of matrices by several
// warps. Local memory is unlimited, and registers of a thread are an estimate. Any multiprocessors run the blocks of a
// cluster, where hardware takes those of one part of the GPU. Device memory that a process maps at two addresses is one
// memory to the race detector (see package weakmem). Pages of the host that are registered at two addresses are two
// memories, and so is what two Machines of one process map.
//
// On macOS it works within one process; on systems other than Linux and macOS New fails.
package cudaemu
