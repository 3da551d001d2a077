package grid

// gates are what kernels in windows need besides the Engine.
type gates struct {
	at     []uint64 // all ranks'
	epochs uintptr  // in device memory
	shape  func(d Direct, ranks, bytes int) windowShape
	aside  aside
	half   Job // of an all-reduce
}

// openGates looks where the gates are.
func (e *Engine) openGates() (err error) {
	at := e.links.Gates()
	if len(at) != e.ranks || e.ranks < 2 || e.ranks > MaxDirect {
		return nil
	}
	e.gates.at, e.gates.shape, e.gates.aside.from = at, shapeOf, asideFrom
	if e.gates.epochs, err = e.alloc(8 * MaxBlocks); err != nil {
		return err
	}
	if err := e.driver.MemsetD8Async(e.gates.epochs, 0, 8*MaxBlocks, e.stream); err != nil {
		return err
	}
	return e.driver.StreamSynchronize(e.stream)
}

// A windowShape is how many blocks of how many threads move tiles of so many
// bytes.
type windowShape struct{ blocks, threads, tile int }

// gateShape is that of a kernel which only passes a gate.
var gateShape = windowShape{blocks: 1, threads: 32, tile: 128}

// shapeOf is the shape of an operation, the same on all ranks: large tiles, as long
// as there are enough for all blocks. From measurements on 4 H200s.
func shapeOf(d Direct, ranks, bytes int) windowShape {
	const vectors = 16 * maxThreads // bytes
	x := windowShape{blocks: 64, threads: maxThreads, tile: vectors}
	total, most := bytes, 4*vectors // what a rank moves, and the largest tile
	switch d {
	case TwoShot, Reduce, Broadcast:
		total /= ranks
	case AllGather, AllToAll, Gather, Scatter:
		total *= ranks
		most = 8 * vectors
	}
	if d != ReduceScatter && total > 16<<20 {
		x.blocks = MaxBlocks
	}
	x.blocks = max(1, min(x.blocks, (total+vectors-1)/vectors))
	for x.tile < most && total >= 2*x.tile*x.blocks {
		x.tile *= 2
	}
	return x
}
