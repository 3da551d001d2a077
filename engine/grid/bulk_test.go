package grid

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/ptx"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/ring/tree"
)

// bulkOptions have several tiles in a slice, and a last one that is shorter.
func bulkOptions(ranks int) Options {
	o := options(ranks)
	o.Bulk, o.TileBytes = true, 96
	return o
}

// bulky has some ranks of a rig move by bulk copies, also where memory is not aligned, and the others by threads.
func (r *rig) bulky(bulk func(rank int) bool) {
	r.t.Helper()
	for i, m := range r.ranks {
		if m.engine.bulk.uneven = true; !bulk(i) {
			m.engine.bulk.tile = 0
		}
		require.NoError(r.t, m.engine.Prepare(nil))
		require.Equal(r.t, bulk(i), m.engine.Bulk(), "rank %d", i)
	}
}

// moves are operations that only move, and one that reduces between them.
func moves(n int) []trial {
	return []trial{
		{name: "gather", schedule: ring.AllGather{N: n}, shares: true, t: kernels.Float32, count: 300},
		{name: "ring", schedule: ring.AllReduce{N: n}, t: kernels.Float32, op: &kernels.Sum, count: 200},
		{name: "log", schedule: direct.LogAllGather{N: n}, shares: true, t: kernels.Int8, count: 777, inPlace: true},
		{name: "tree", schedule: tree.Broadcast{N: n}, t: kernels.Int8, count: 3001},
		{name: "alltoall", schedule: direct.AlltoAll{N: n}, shares: true, t: kernels.Int8, count: 733, in: 1},
	}
}

// TestBulkOrders runs operations of two communicators, each one after the other without
// waiting in between, eager and then in graphs.
func TestBulkOrders(t *testing.T) {
	tier.Long(t)
	for seed := range seeds() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			n := 2 + int(seed%2)
			d := emulated(t, n, cudaemu.Config{Seed: seed, Link: link(seed + seed/2)})
			rigs := []*rig{newRig(t, d, small(n), bulkOptions(n)), newRig(t, d, small(n), bulkOptions(n))}
			all := make([][]worker, len(rigs))
			for i, r := range rigs {
				r.bulky(func(rank int) bool { return seed%4 != 3 || rank > 0 })
				for k, x := range moves(n) {
					all[i] = append(all[i], r.prepare(x, seed+uint64(k)))
				}
			}
			for i, r := range rigs { // kernels are loaded before any runs
				for _, m := range r.ranks {
					r.with(m, func() error { return m.engine.Prepare(all[i][1].base().jobs[m.rank].Reducer) })
				}
				r.reset(all[i]...)
			}
			for k := range all[0] {
				for i, r := range rigs {
					r.run(all[i][k])
				}
			}
			var graphs [][]cuda.GraphExec
			for i, r := range rigs {
				r.check(all[i]...)
				graphs = append(graphs, r.captured(all[i]...))
				r.reset(all[i]...)
			}
			for i, r := range rigs {
				r.launch(graphs[i])
			}
			for i, r := range rigs {
				r.check(all[i]...)
			}
		})
	}
}

// TestBulkSlots has slots of one tile, of many, and fewer of them than turns.
func TestBulkSlots(t *testing.T) {
	tier.Long(t)
	const n = 3
	for seed, g := range []Geometry{
		{Lanes: 1, Slots: 2, SlotBytes: 128},
		{Lanes: 2, Slots: 2, SlotBytes: 4096, NoteBytes: 128},
		{Lanes: 1, Slots: 32, SlotBytes: 128},
		{Lanes: 3, Slots: 16, SlotBytes: 1024},
	} {
		o := bulkOptions(n)
		o.TileBytes = []int{64, 128, 4096}[seed%3]
		r := newRig(t, emulated(t, n, cudaemu.Config{Seed: uint64(seed)}), Board{Ranks: n, MailBytes: 128, Near: g, Far: g},
			o)
		r.bulky(func(rank int) bool { return true })
		for i, x := range moves(n) {
			if tier.Pairs() || (seed+i)%2 == 0 {
				r.sub(fmt.Sprint(seed, x.name), func() { r.try(x, uint64(i)) })
			}
		}
	}
}

// TestBulkCannot: older devices and drivers do without, and say so.
func TestBulkCannot(t *testing.T) {
	const n = 2
	if gputest.OnGPU() {
		t.Skip("a GPU is what it is")
	}
	for name, c := range map[string]cudaemu.Config{
		"device": {Shapes: []cudaemu.Device{{Major: 8, Minor: 6}, {Major: 8, Minor: 6}}},
		"driver": {DriverVersion: 11080},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, emulated(t, n, c), small(n), bulkOptions(n))
			for _, m := range r.ranks {
				require.NoError(t, m.engine.Prepare(nil))
				require.False(t, m.engine.Bulk())
			}
			r.try(trial{name: "gather", schedule: ring.AllGather{N: n}, shares: true, t: kernels.Int8, count: 4096}, 1)
		})
	}
}

// TestBulkLoadFails: an error that says nothing about the GPU is reported, and the next load may succeed.
func TestBulkLoadFails(t *testing.T) {
	r := newRig(t, emulated(t, 1, cudaemu.Config{}), small(1), bulkOptions(1))
	e := r.ranks[0].engine
	failing := cuda.ErrOutOfMemory
	e.text = func(name ptx.Name) ([]byte, error) {
		if name.Source == ptx.Bulk.Source && failing != 0 {
			return nil, failing
		}
		return ptx.Text(name)
	}
	require.ErrorIs(t, e.Prepare(nil), cuda.ErrOutOfMemory)
	failing = 0
	require.NoError(t, e.Prepare(nil))
	require.True(t, e.Bulk())
}
