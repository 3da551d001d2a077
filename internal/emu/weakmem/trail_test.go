package weakmem

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/alu"
)

// traced are three processes with a trail of the memory that they share.
func traced() (p [3]*process, faults *[]*Fault) {
	data, trail := make([]byte, 256), make([]uint64, 64)
	faults = new([]*Fault)
	peers := [3]*Peer{}
	for i := range p {
		p[i] = &process{}
		m := New(Config{Seed: uint64(i), Report: func(f *Fault) bool { *faults = append(*faults, f); return true }})
		var sites []TrailSite
		peers[i] = &Peer{Process: 100 + i, Releases: new(atomic.Uint64), Strong: new(atomic.Uint64),
			Site: func(n uint32) (TrailSite, bool) { return sites[n-1], true }}
		index := func(slot int) int { // of a peer among the others
			if slot == i {
				return -1
			}
			return slot - b2i(slot > i)
		}
		m.SetLog(&Log{Releases: peers[i].Releases, Strong: peers[i].Strong,
			Number: func(s TrailSite) uint32 { sites = append(sites, s); return uint32(len(sites)) },
			Peers: func() (others []*Peer) {
				for k, o := range peers {
					if k != i {
						others = append(others, o)
					}
				}
				return others
			}})
		_ = m.Map(Allocation{Addr: x, Data: data, Device: i, Foreign: true, Name: "shared",
			Trail: &Trail{Writes: trail[:32], Reads: trail[32:], Slot: i, Shared: func() bool { return true }, Peer: index}})
		p[i].m = m
	}
	for i := range p {
		p[i].begin(i)
	}
	return p, faults
}

// begin begins a kernel of two blocks.
func (p *process) begin(device int) *Grid {
	g := p.m.Begin(device, "k", Clock{})
	for j := range p.blocks {
		p.blocks[j] = g.Block([3]int{j, 0, 0}, [3]int{1, 1, 1}, 0)
	}
	return g
}

func (p *process) end(g *Grid) {
	for _, b := range p.blocks {
		b.End()
	}
	g.End()
}

// drain shows all stores.
func (p *process) drain() { p.m.settle() }

func (p *process) fence(block int, s Scope) {
	p.blocks[block].Fence(0, 1, How{Order: AcqRel, Scope: s})
}

func TestRacesBetweenProcesses(t *testing.T) {
	weak, near := How{}, How{Order: Relaxed, Scope: GPU}
	for name, test := range map[string]struct {
		do    func(p [3]*process)
		races bool
	}{
		"store, load":         {func(p [3]*process) { p[0].store(0, x, 7, weak); p[0].drain(); p[1].load(0, x, weak) }, true},
		"load, store":         {func(p [3]*process) { p[0].load(0, x, weak); p[1].store(0, x, 7, weak) }, true},
		"store, store":        {func(p [3]*process) { p[0].store(0, x, 7, weak); p[1].store(0, x, 7, weak) }, true},
		"load, load":          {func(p [3]*process) { p[0].load(0, x, weak); p[1].load(0, x, weak) }, false},
		"neighbouring bytes":  {func(p [3]*process) { p[0].store(0, x, 7, weak); p[1].store(0, x+4, 7, weak) }, false},
		"strong":              {func(p [3]*process) { p[0].store(0, x, 7, relaxed); p[1].load(0, x, relaxed) }, false},
		"strong and weak":     {func(p [3]*process) { p[0].store(0, x, 7, relaxed); p[1].load(0, x, weak) }, true},
		"too narrow a scope":  {func(p [3]*process) { p[0].store(0, x, 7, near); p[1].load(0, x, relaxed) }, true},
		"release and acquire": {message(releases, acquire, false, false), false},
		"fences":              {message(relaxed, relaxed, true, true), false},
		"no release":          {message(relaxed, acquire, false, false), true},
		"no acquire":          {message(releases, relaxed, false, false), true},
		"no fence of reader":  {message(relaxed, relaxed, true, false), true},
		"a flag that was read is reset": {func(p [3]*process) {
			p[0].store(0, ready, 1, relaxed)
			p[0].drain()
			p[1].load(0, ready, relaxed)
			p[1].store(0, ready, 0, weak)
		}, false},
		"a flag that was acquired is reset": {func(p [3]*process) {
			p[0].store(0, ready, 1, releases)
			p[1].load(0, ready, acquire)
			p[1].store(0, ready, 0, weak)
		}, false},
		"a flag is reset that was not read": {func(p [3]*process) {
			p[0].store(0, ready, 1, releases)
			p[1].store(0, ready, 0, weak)
		}, true},
		"another block's release": {func(p [3]*process) { // is taken for one of this block
			p[0].store(0, x, 7, weak)
			p[0].store(1, ready, 1, releases)
			p[1].load(0, ready, acquire)
			p[1].load(0, x, weak)
		}, false},
		"acquired by another block": {func(p [3]*process) {
			p[0].store(0, x, 7, weak)
			p[0].store(0, ready, 1, releases)
			p[1].load(1, ready, acquire)
			p[1].load(0, x, weak)
		}, true},
		"atomics": {func(p [3]*process) {
			p[0].store(0, x, 7, weak)
			p[0].fence(0, System)
			p[0].add(0, ready, relaxed)
			p[1].add(0, ready, relaxed)
			p[1].fence(0, System)
			p[1].load(0, x, weak)
		}, false},
		"through a third": {func(p [3]*process) {
			p[0].store(0, x, 7, weak)
			p[0].store(0, ready, 1, releases)
			p[2].load(0, ready, acquire)
			p[2].store(0, y, 1, releases)
			p[1].load(0, y, acquire)
			p[1].load(0, x, weak)
		}, false},
		"kernels one after the other": {func(p [3]*process) {
			g := p[0].begin(0)
			p[0].store(0, x, 7, weak)
			p[0].end(g)
			p[1].begin(1)
			p[1].load(0, x, weak)
		}, false},
		"a kernel that began before, told by a copy": {func(p [3]*process) {
			g := p[0].begin(0)
			p[0].store(0, x, 7, weak)
			p[0].end(g)
			_, _ = p[0].m.Write(ready, []byte{1, 0, 0, 0}, Clock{})
			p[1].load(0, ready, acquire)
			p[1].load(0, x, weak)
		}, false},
		"a kernel that began before, told by the host": {func(p [3]*process) {
			g := p[0].begin(0)
			p[0].store(0, x, 7, weak)
			p[0].end(g)
			p[0].m.HostSaw(Clock{})
			p[1].load(0, ready, acquire)
			p[1].load(0, x, weak)
		}, false},
		"a kernel that began before, not told": {func(p [3]*process) {
			g := p[0].begin(0)
			p[0].store(0, x, 7, weak)
			p[0].end(g)
			p[1].load(0, ready, acquire)
			p[1].load(0, x, weak)
		}, true},
		"a kernel that began before": {func(p [3]*process) {
			g := p[0].begin(0)
			p[0].store(0, x, 7, weak)
			p[0].end(g)
			p[1].load(0, x, weak)
		}, true},
	} {
		p, faults := traced()
		test.do(p)
		require.Equal(t, test.races, len(*faults) > 0, "%s: %v", name, *faults)
		if test.races {
			require.Equal(t, Race, (*faults)[0].Kind)
			require.Contains(t, (*faults)[0].Error(), "of process 100")
		}
	}
}

// message is data and a flag of one process, read by another.
func message(store, load How, writer, reader bool) func(p [3]*process) {
	return func(p [3]*process) {
		p[0].store(0, x, 7, How{})
		if writer {
			p[0].fence(0, System)
		}
		p[0].store(0, ready, 1, store)
		p[0].drain()
		p[1].load(0, ready, load)
		if reader {
			p[1].fence(0, System)
		}
		p[1].load(0, x, How{})
	}
}

func (p *process) add(block int, addr uint64, how How) {
	var old alu.Lanes
	_ = p.blocks[block].Atomic(0, 1, one(0, addr), 4, &old, func(_ int, v uint64) uint64 { return v + 1 }, how)
}
