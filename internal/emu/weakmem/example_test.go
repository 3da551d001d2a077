package weakmem_test

import (
	"fmt"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A block stores data and then a flag. The fence between them is missing, so
// what the flag promises is not so: the data may come later, and reading it is
// a race.
func Example() {
	m := weakmem.New(weakmem.Config{Seed: 2, Report: func(f *weakmem.Fault) bool {
		fmt.Println(f)
		return true
	}})
	const data, flag = 0x1000, 0x1080
	_ = m.Map(weakmem.Allocation{Addr: data, Data: make([]byte, 256), Name: "mailbox"})

	grid := m.Begin(0, "send", weakmem.Clock{})
	sender := grid.Block([3]int{0, 0, 0}, [3]int{32, 1, 1}, 0)
	reader := grid.Block([3]int{1, 0, 0}, [3]int{32, 1, 1}, 0)
	register := func(v uint64) []*alu.Lanes { return []*alu.Lanes{{v}} }
	volatile := weakmem.How{Order: weakmem.Relaxed, Scope: weakmem.System}

	store := func(addr, v uint64, how weakmem.How, line int) {
		how.Line = line
		_ = sender.Store(0, 1, &alu.Lanes{addr}, 4, register(v), how)
	}
	store(data, 42, weakmem.How{}, 10)
	// sender.Fence(0, 1, weakmem.How{Order: weakmem.AcqRel, Scope: weakmem.GPU})
	store(flag, 1, volatile, 12)

	load := func(addr uint64, how weakmem.How, line int) uint64 {
		how.Line = line
		to := register(0)
		_ = reader.Load(0, 1, &alu.Lanes{addr}, 4, to, how)
		return to[0][0]
	}
	for load(flag, volatile, 20) == 0 {
		m.Tick()
	}
	reader.Fence(0, 1, weakmem.How{Order: weakmem.AcqRel, Scope: weakmem.GPU, Line: 21})
	fmt.Println("read", load(data, weakmem.How{}, 22))
	// Output:
	// race: load of 4 bytes from 0x1000 (mailbox+0x0) by kernel send, line 22, device 0, block (1,0,0), thread (0,0,0)
	// 	both are weak, and nothing orders it with the store of 4 bytes by kernel send, line 10, device 0, block (0,0,0), thread (0,0,0)
	// read 0
}
