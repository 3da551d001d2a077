package grid

import "github.com/ringo-go/ringo/kernels/collective"

// gates are the state that window kernels need besides the Engine's.
type gates struct {
	at     []uint64 // addresses of all ranks' gates
	epochs uintptr  // in device memory
	shape  func(d Direct, ranks, bytes int) windowShape
	aside  aside
	half   Job // the reduce-scatter of an all-reduce by copy engines
}

func (e *Engine) openGates() (err error) {
	at := e.links.Gates()
	if len(at) != e.ranks || e.ranks < 2 || e.ranks > MaxDirect {
		return nil
	}
	e.gates.at, e.gates.shape, e.gates.aside.from = at, shapeOf, asideFrom
	if e.gates.epochs, err = e.alloc(8 * MaxBlocks); err != nil {
		return err
	}
	return e.clear(e.gates.epochs, 8*MaxBlocks)
}

// A windowShape is the number of blocks, the threads of each, and the bytes that a
// block moves at once.
type windowShape struct{ blocks, threads, tile int }

// gateShape is the shape of a kernel that only passes a gate.
var gateShape = windowShape{blocks: 1, threads: 32, tile: 128}

// shapeOf is the shape of an operation, the same on all ranks.
func shapeOf(d Direct, ranks, bytes int) windowShape {
	blocks, tile := collective.WindowShape(d, ranks, bytes)
	return windowShape{blocks: blocks, threads: maxThreads, tile: tile}
}
