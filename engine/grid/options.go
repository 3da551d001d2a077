package grid

import (
	"cmp"
	"fmt"
	"time"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/kernels/collective"
	"github.com/ringo-go/ringo/sched"
)

// Options of an Engine. Zero fields take defaults.
type Options struct {
	Rank    sched.Rank
	Ranks   int // of the communicator
	Threads int // that move data in a block, a multiple of 32 up to 512, which is the default
	// MinSlice is the least number of bytes that a lane moves: a small operation has
	// fewer lanes. A multiple of 128.
	MinSlice int
	// Blocks is the most blocks of a kernel that can run with any number: by default
	// the number of the device's multiprocessors; less if ranks share the device. There
	// must be room for all of them at once, whatever else runs: messages rely on it.
	Blocks int
	// DirectBlocks is the most blocks of a direct kernel, from 1 to 128, the default;
	// the same on all ranks. If ranks share a device, the kernels of all of them have
	// to fit on it at once.
	DirectBlocks int
	// FIFOBytes is the length of the ring for tables that do not fit into arguments, by default 1 MiB. A ring that
	// is too short for one collective becomes longer.
	FIFOBytes int
	// ArgsBytes is how long a table in a kernel's arguments may be, by default as long
	// as there is room for. With 1 all tables lie in the ring.
	ArgsBytes int
	// Bulk has schedules carried out by bulk copies, if the device can: of capability 9.0 or
	// newer. Ranks may differ.
	Bulk bool
	// TileBytes is the length of a bulk copy where slices are combined: a multiple of 32 from 64 bytes to 24 KiB,
	// by default 12 KiB, with which two blocks fit on a multiprocessor. Kernels that only move have 4/3 of it.
	TileBytes int
	// Linger has operations share a kernel of bulk copies. Ranks may differ.
	Linger Linger
	// Guard ends waits for room in the ring. Without it there is no deadline.
	Guard *fifo.Guard
}

// Linger says how one kernel carries out several operations one after the other, if they follow each other closely.
type Linger struct {
	Time   time.Duration // that the kernel waits for the next one, below 4 s; 0: each has its own kernel
	Blocks int           // of the kernel, by default Options.Blocks: operations of more lanes have their own kernel
}

const (
	maxThreads       = collective.MaxThreads
	defaultMinSlice  = 8 << 10
	defaultFIFOBytes = 1 << 20
	maxFIFOBytes     = 1 << 30
	bulkTile         = 12 << 10 // bytes, with which two blocks fit on a multiprocessor
	mostTile         = 24 << 10 // bytes
	tileUnit         = 32       // bytes: where slices are combined, a tile has two halves
	leastTile        = 64       // bytes: a half has a vector that is shared with the next one
)

// complete sets the defaults that do not depend on the device, and checks the others.
func (o *Options) complete() error {
	o.Threads, o.MinSlice = cmp.Or(o.Threads, maxThreads), cmp.Or(o.MinSlice, defaultMinSlice)
	o.DirectBlocks, o.FIFOBytes = cmp.Or(o.DirectBlocks, MaxBlocks), cmp.Or(o.FIFOBytes, defaultFIFOBytes)
	o.TileBytes = cmp.Or(o.TileBytes, bulkTile)
	if o.Guard == nil {
		o.Guard = new(fifo.Guard)
	}
	switch {
	case o.Ranks < 1:
		return fmt.Errorf("grid: %d ranks", o.Ranks)
	case o.Rank < 0 || int(o.Rank) >= o.Ranks:
		return fmt.Errorf("grid: rank %d of %d", o.Rank, o.Ranks)
	case o.Threads < 32 || o.Threads > maxThreads || o.Threads%32 != 0:
		return fmt.Errorf("grid: blocks of %d threads: want a multiple of 32 up to %d", o.Threads, maxThreads)
	case o.DirectBlocks < 1 || o.DirectBlocks > MaxBlocks:
		return fmt.Errorf("grid: direct kernels of %d blocks: want 1 to %d", o.DirectBlocks, MaxBlocks)
	case o.FIFOBytes < 0 || o.FIFOBytes > maxFIFOBytes:
		return fmt.Errorf("grid: a ring of %d bytes: want 0 to %d", o.FIFOBytes, maxFIFOBytes)
	case o.TileBytes < leastTile || o.TileBytes > mostTile || o.TileBytes%tileUnit != 0:
		return fmt.Errorf("grid: tiles of %d bytes: want a multiple of %d from %d to %d", o.TileBytes, tileUnit,
			leastTile, mostTile)
	case o.ArgsBytes < 0:
		return fmt.Errorf("grid: tables of %d bytes in arguments", o.ArgsBytes)
	case o.MinSlice < 128 || o.MinSlice%128 != 0:
		return fmt.Errorf("grid: slices of %d bytes: want a multiple of 128", o.MinSlice)
	}
	return nil
}
