package grid

import (
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/device"
)

// A bulk is an Engine's state of bulk copies, by which kernels/cuda/bulk.h moves slices: few blocks of few threads
// reach the bandwidth of many, and the rest of the GPU stays free. As with other kernels, two blocks fit on a
// multiprocessor, by shared memory too.
type bulk struct {
	tile   int  // bytes, 0 where bulk copies are not used
	uneven bool // for tests: also where memory is not aligned
}

const (
	bulkThreads    = 10 * 32  // of a block: reader, loader and 8 storers, a warp each
	bulkSumThreads = 12 * 32  // where slices are combined: 6 adders and 4 storers
	bulkTile       = 12 << 10 // bytes, with which two blocks fit on a multiprocessor
	mostTile       = 24 << 10 // bytes
	tileUnit       = 32       // bytes: where slices are combined, a tile has two halves
	leastTile      = 64       // bytes: a half has a vector that is shared with the next one
	ringTiles      = 8        // in a block's shared memory
	bulkTurns      = 3 << 10  // bytes of shared memory, at most, between the warps
	bulkTables     = 12 << 10 // bytes of shared memory, at most, for tables
	bulkCapability = 90
)

// HasBulk reports whether a device has bulk copies, and the shared memory for its blocks.
func HasBulk(d cuda.Driver, dev cuda.Device) (bool, error) { return bulkFits(d, dev, bulkTile) }

func bulkFits(d cuda.Driver, dev cuda.Device, tile int) (bool, error) {
	capability, err := cuda.Capability(d, dev)
	if err != nil || capability < bulkCapability {
		return false, err
	}
	most, err := d.DeviceGetAttribute(cuda.AttrMaxSharedPerBlockOptin, dev)
	return bulkTables+ringTiles*tile+bulkTurns <= most, err
}

// openBulk finds out whether the device has bulk copies and reaches the peers' memory: queues in host memory are left
// to threads.
func (e *Engine) openBulk(o Options) error {
	if !o.Bulk || e.links.Gates() == nil {
		return nil
	}
	tile := o.TileBytes
	if tile == 0 {
		tile = bulkTile
	}
	fits, err := bulkFits(e.driver, e.dev, tile)
	if fits && err == nil {
		e.bulk.tile = tile
	}
	return err
}

// Bulk reports whether schedules are carried out by bulk copies, where chunks lie in multiples of 16 bytes. The answer
// is final once Prepare(nil) has loaded the kernels that copy.
func (e *Engine) Bulk() bool { return e.bulk.tile > 0 }

// bulkModule finds or loads the kernels that move by bulk copies, and combine with r if it is
// not nil; nil if they are not used, or not for blocks with so many bytes of tables. A driver
// that refuses them is too old for them, and threads move everything from then on.
func (e *Engine) bulkModule(r *kernels.Reducer, tables int) (*module, error) {
	if tables > bulkTables || e.bulk.tile == 0 {
		return nil, nil
	}
	m, _, err := e.module(r, "bulk")
	if err != nil && device.Refused(err) {
		e.bulk.tile = 0
		return nil, nil
	}
	return m, err
}

// bulkFor is the module that carries out a job by bulk copies, nil if it does not lie in
// multiples of 16 bytes: threads are better at that. Where slices are combined In may lie
// anywhere.
func (e *Engine) bulkFor(j *Job) (*module, error) {
	in := j.Reducer != nil || evenly(uint64(j.In.Ptr()), &j.InL)
	if !e.bulk.uneven && !(in && evenly(uint64(j.Out.Ptr()), &j.OutL)) {
		return nil, nil
	}
	return e.bulkModule(j.Reducer, j.Program.shared())
}

// evenly reports whether all chunks begin at multiples of 16 bytes.
func evenly(at uint64, l *engine.Layout) bool {
	if l.Off == nil && l.Total > l.Chunk {
		at |= uint64(l.Chunk)
	}
	for _, off := range l.Off {
		at |= uint64(off)
	}
	return at%16 == 0
}

// aligned reports whether the messages of the current part begin at multiples of 16 bytes.
func (e *Engine) aligned() bool {
	for i := range e.ways {
		y := &e.ways[i]
		for k := y.first; k < y.next; k++ {
			if x := &y.messages[k]; (x.src|x.dst)%16 != 0 && !e.bulk.uneven {
				return false
			}
		}
	}
	return true
}

// bulkBlock sets the current launch's block: behind its tables lies the ring of tiles.
func (e *Engine) bulkBlock(r *kernels.Reducer, tables int) {
	l := &e.frame.launch
	l.Block.X, l.Shared = bulkThreads, roundUp(tables, 128)+ringTiles*e.bulk.tile
	if r != nil {
		l.Block.X = bulkSumThreads
	}
}
