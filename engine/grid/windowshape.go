package grid

// gates are what kernels in windows need besides the Engine.
type gates struct {
	at     []uint64 // all ranks'
	epochs uintptr  // in device memory
	shape  func(d Direct, ranks, bytes int) windowShape
	aside  aside
}

// openGates looks where the gates are.
func (e *Engine) openGates() (err error) {
	at := e.links.Gates()
	if len(at) != e.ranks || e.ranks < 2 || e.ranks > MaxDirect {
		return nil
	}
	e.gates.at, e.gates.shape = at, shapeOf
	if e.gates.epochs, err = e.alloc(8 * MaxBlocks); err != nil {
		return err
	}
	if err := e.driver.MemsetD8Async(e.gates.epochs, 0, 8*MaxBlocks, e.stream); err != nil {
		return err
	}
	if err := e.driver.StreamSynchronize(e.stream); err != nil {
		return err
	}
	return e.openAside()
}

// A windowShape is how many blocks of how many threads move tiles of so many
// bytes.
type windowShape struct {
	blocks, threads, tile int
	spread                bool // an all-gather writes to all ranks at once, not to one after the other
}

// gateShape is that of a kernel which only passes a gate.
var gateShape = windowShape{blocks: 1, threads: 32, tile: 128}

// shapeOf is the shape of an operation, the same on all ranks.
func shapeOf(d Direct, ranks, bytes int) windowShape {
	total := bytes // that a rank moves
	switch d {
	case TwoShot, Reduce, Broadcast:
		total = bytes / ranks
	case AllGather, AllToAll, Gather, Scatter:
		total = bytes * ranks
	}
	const vectors = 16 * maxThreads // bytes
	blocks := max(1, min(MaxBlocks, (total+vectors-1)/vectors))
	return windowShape{blocks: blocks, threads: maxThreads, tile: vectors * max(1, min(4, total/(blocks*vectors)))}
}
