package simt

import (
	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// LoadAsync loads 4 bytes of shared memory in the thread of a lane as a bulk copy does.
func (e Event) LoadAsync(lane int, addr uint64) *weakmem.Fault {
	var at, d alu.Lanes
	at[lane] = addr
	return e.warp.block.mem.Load(e.warp.index, 1<<lane, &at, 4, []*alu.Lanes{&d},
		weakmem.How{Shared: true, Async: true, Line: e.In.Line})
}
