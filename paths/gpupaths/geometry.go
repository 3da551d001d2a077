package gpupaths

import (
	"fmt"

	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/paths"
)

// A geometry is the shapes of the queues of each kind of path, the same on all ranks.
type geometry struct {
	board  grid.Board // P2P: in GPU memory
	pinned grid.Board // in host memory
	bridge grid.Geometry
	blocks int // of a kernel at most
}

// geometryOf is the geometry for a number of ranks, whose kernels have at most this number of
// blocks: a block for each lane.
func geometryOf(ranks, blocks int) geometry {
	g := geometry{
		board: grid.DefaultBoard(ranks),
		pinned: grid.Board{
			Ranks: ranks,
			Near:  grid.Geometry{Lanes: 16, Slots: 4, SlotBytes: 64 << 10},
			Far:   grid.Geometry{Lanes: max(1, min(8, 32/ranks)), Slots: 4, SlotBytes: 64 << 10},
		},
		bridge: grid.Geometry{Lanes: 4, Slots: 8, SlotBytes: 128 << 10},
		blocks: blocks,
	}
	if ranks > 8 { // every pair has queues, also if it never uses them
		g.bridge = grid.Geometry{Lanes: 1, Slots: 4, SlotBytes: 128 << 10}
	}
	for _, q := range []*grid.Geometry{&g.board.Near, &g.board.Far, &g.pinned.Near, &g.pinned.Far, &g.bridge} {
		q.Lanes = min(q.Lanes, blocks)
	}
	return g
}

// Describe fills in the part of a profile that is about the rank's GPU.
func Describe(p *paths.Profile, d *gpu.Device) error {
	var err error
	if p.GPU, err = d.Name(); err != nil {
		return err
	}
	uuid, err := d.Driver().DeviceGetUuid(d.Handle())
	if err != nil {
		return err
	}
	p.GPUID = fmt.Sprintf("%x", uuid)
	p.Processors, err = d.Driver().DeviceGetAttribute(cuda.AttrMultiprocessorCount, d.Handle())
	return err
}

// sharing is how many ranks at most have the same GPU.
func sharing(all []paths.Profile) int {
	most, ranks := 0, map[string]int{}
	for i := range all {
		ranks[all[i].GPUID]++
		most = max(most, ranks[all[i].GPUID])
	}
	return most
}

// sharingNotes is a line that says so if ranks share a GPU.
func sharingNotes(all []paths.Profile) []string {
	n := sharing(all)
	if n < 2 {
		return nil
	}
	return []string{fmt.Sprintf("GPU memory: up to %d ranks share a GPU, each with a part of its multiprocessors; those of different processes take turns", n)}
}
