package weakmem

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/alu"
)

// Two Memories over the same bytes are what two processes have.

// process is one of them, with a kernel of two blocks.
type process struct {
	m      *Memory
	blocks [2]*Block
	races  int
}

func processes(seed uint64) (p [2]*process) {
	data, written := make([]byte, 256), make([]uint64, 4)
	for i := range p {
		p[i] = &process{}
		p[i].m = New(Config{Seed: seed + uint64(i)<<32, Report: func(*Fault) bool { p[i].races++; return true }})
		_ = p[i].m.Map(Allocation{Addr: x, Data: data, Written: written, Device: i, Foreign: true, Name: "shared"})
		g := p[i].m.Begin(i, "k", Clock{})
		for j := range p[i].blocks {
			p[i].blocks[j] = g.Block([3]int{j, 0, 0}, [3]int{1, 1, 1}, 0)
		}
	}
	return p
}

func (p *process) load(block int, addr uint64, how How) uint64 {
	var d alu.Lanes
	_ = p.blocks[block].Load(0, 1, one(0, addr), 4, []*alu.Lanes{&d}, how)
	return d[0]
}

func (p *process) store(block int, addr, v uint64, how How) {
	_ = p.blocks[block].Store(0, 1, one(0, addr), 4, []*alu.Lanes{one(0, v)}, how)
	if how.Order == Release { // who waits for it has seen it
		p.m.settle()
	}
	p.m.Tick()
}

var (
	acquire  = How{Order: Acquire, Scope: System}
	releases = How{Order: Release, Scope: System}
	relaxed  = How{Order: Relaxed, Scope: System}
)

func TestMessagePassingBetweenProcesses(t *testing.T) {
	stale := 0
	for seed := range uint64(300) {
		p := processes(seed)
		p[1].m.allocations.find(x).setWritten(ready-x, 4)
		p[1].m.allocations.find(x).setWritten(y-x, 4)
		p[0].store(0, x, 7, How{})
		p[0].store(0, ready, 1, releases)
		require.Equal(t, uint64(1), p[1].load(0, ready, acquire))
		require.Equal(t, uint64(7), p[1].load(0, x, How{}))

		p[0].store(0, y, 7, How{})
		p[0].store(0, ready, 2, relaxed) // lacks a fence
		for p[1].load(0, ready, acquire) != 2 {
			p[0].m.Tick()
		}
		if p[1].load(0, y, How{}) != 7 {
			stale++
		}
		require.Zero(t, p[0].races+p[1].races)
	}
	require.Positive(t, stale)
}

// What one block hands to another one by way of another process is ordered,
// though only that process sees how; without its flag it is a race.
func TestOrderThroughAnotherProcess(t *testing.T) {
	for _, asks := range []bool{true, false} {
		p := processes(1)
		p[0].m.allocations.find(x).setWritten(y-x, 4)
		p[0].store(0, x, 7, How{})
		p[0].store(0, ready, 1, releases)
		require.Equal(t, uint64(1), p[1].load(0, ready, acquire))
		p[1].store(0, y, 1, releases)
		if asks {
			require.Equal(t, uint64(1), p[0].load(1, y, acquire))
		}
		require.Equal(t, uint64(7), p[0].load(1, x, How{}))
		require.Equal(t, !asks, p[0].races > 0)
	}
}
