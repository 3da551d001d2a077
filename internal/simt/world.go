package simt

import "github.com/ringo-go/ringo/internal/weakmem"

// A World executes grids on devices.
type World struct{ cfg Config }

// NewWorld has no grids yet.
func NewWorld(c Config) *World { return &World{cfg: c} }

// Start queues a grid. Its blocks become resident as soon as there is room on
// the multiprocessors of its device, in the order of Start calls. An error says that it can
// never fit, or that the launch does not suit the kernel.
func (w *World) Start(g *Grid) error { return nil }

// Step runs about so many thread-instructions of all grids, interleaved, and
// returns how many it ran: fewer than asked, maybe none, when all grids are
// done. What runs does not depend on how it is cut into steps.
func (w *World) Step(instructions int) (ran int) { return 0 }

// Kill stops all grids of a device with a fault: an abort or a lost device.
func (w *World) Kill(device int, f *weakmem.Fault) {}

// Touch says that memory was changed by others, so that waiting threads may go on: see Config.Stall.
func (w *World) Touch() {}

// Instructions is how many thread-instructions were executed since NewWorld.
func (w *World) Instructions() uint64 { return 0 }

// Fits is how many blocks of a kernel a multiprocessor of a device holds at once.
func (w *World) Fits(device int, k *Kernel, threads, shared int) int { return 0 }
