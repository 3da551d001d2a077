package grid

import (
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/device"
)

// A bulk is an Engine's state of bulk copies, by which kernels/cuda/bulk.h moves slices: few blocks of few threads
// reach the bandwidth of many, and the rest of the GPU stays free. As with other kernels, two blocks fit on a
// multiprocessor, by shared memory too.
type bulk struct {
	*base
	tile   int  // bytes, 0 where bulk copies are not used
	uneven bool // for tests: also where memory is not aligned
}

const (
	bulkThreads    = 10 * 32  // of a block: reader, loader and 8 storers, a warp each
	bulkSumThreads = 12 * 32  // where slices are combined: 6 adders and 4 storers
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

// open finds out whether the device has bulk copies and reaches the peers' memory: queues in host memory are left
// to threads.
func (b *bulk) open(o *Options) error {
	if !o.Bulk || b.links.Gates() == nil {
		return nil
	}
	fits, err := bulkFits(b.driver, b.dev, o.TileBytes)
	if fits && err == nil {
		b.tile = o.TileBytes
		b.dynamic["bulk"] = bulkTables + ringTiles*b.tile
	}
	return err
}

// Bulk reports whether the device has bulk copies for schedules. The answer is final once Prepare(nil) has loaded the
// kernels that copy.
func (b *bulk) Bulk() bool { return b.tile > 0 }

// bulkModule finds or loads the kernels that move by bulk copies, and combine with r if it is
// not nil; nil if they are not used, or not for blocks with so many bytes of tables. A driver
// that refuses them is too old for them, and threads move everything from then on.
func (b *bulk) bulkModule(r *kernels.Reducer, tables int) (*module, kernels.Program, error) {
	if tables > bulkTables || b.tile == 0 {
		return nil, kernels.Program{}, nil
	}
	m, p, err := b.module(r, "bulk")
	if err != nil && device.Refused(err) {
		b.tile = 0
		return nil, p, nil
	}
	return m, p, err
}

// block sets the current launch's block: behind its tables lies the ring of tiles.
func (b *bulk) block(r *kernels.Reducer, tables int) {
	b.call.Block.X, b.call.Shared = bulkThreads, roundUp(tables, 128)+ringTiles*b.tile
	if r != nil {
		b.call.Block.X = bulkSumThreads
	}
}
