package handbook_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/simt"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// Mail is a mailbox in Go: a value and a flag that says that it is there.
type mail struct {
	value int
	full  atomic.Bool
}

func Example_mail() {
	var m mail
	go func() {
		m.value = 42       // first the data
		m.full.Store(true) // then the flag; an atomic store in Go releases all that came before
	}()
	for !m.full.Load() { // an atomic load acquires
	}
	fmt.Println(m.value)
	// Output:
	// 42
}

func Example_queue() {
	p, c, err := fifo.NewLocal(fifo.Geometry{Slots: 2, SlotBytes: 64}, fifo.Waiting{}, fifo.Waiting{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, text := range []string{"one", "two"} {
		slot, err := p.Reserve(len(text))
		copy(slot.Bytes(), text)
		fmt.Println(err, p.Publish(fifo.Stamp{}), "free:", p.Free())
	}
	slot, _, err := c.Next()
	fmt.Printf("%s %v free: %d\n", slot.Bytes(), err, p.Free()) // it is being read
	fmt.Println(c.Release(), "free:", p.Free())
	// Output:
	// <nil> <nil> free: 1
	// <nil> <nil> free: 0
	// one <nil> free: 0
	// <nil> free: 1
}

// mailPTX is the same between two blocks of a GPU. FENCE is where the order comes from.
const mailPTX = `.version 7.0
.target sm_70
.address_size 64
.visible .entry mail(.param .u64 box)
{
	.reg .pred %p<2>;
	.reg .b32 %r<4>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd0, [box];
	mov.u32 %r0, %ctaid.x;
	setp.ne.u32 %p0, %r0, 0;
	@%p0 bra RECEIVE;
	mov.u32 %r1, 42;
	st.global.u32 [%rd0], %r1;
	FENCE
	mov.u32 %r2, 1;
	st.relaxed.gpu.global.u32 [%rd0+128], %r2;
	ret;
RECEIVE:
	ld.relaxed.gpu.global.u32 %r2, [%rd0+128];
	setp.eq.u32 %p1, %r2, 0;
	@%p1 bra RECEIVE;
	FENCE
	ld.global.u32 %r3, [%rd0];
	st.global.u32 [%rd0+256], %r3;
	ret;
}
`

// deliver runs mailPTX with a fence, or none, under many seeds of the emulator.
func deliver(fence string) (races, wrong int) {
	module, err := ptx.Parse("mail.ptx", []byte(strings.ReplaceAll(mailPTX, "FENCE", fence)))
	if err != nil {
		panic(err)
	}
	program, err := simt.Compile(module)
	if err != nil {
		panic(err)
	}
	kernel, _ := program.Kernel("mail")
	for seed := range 50 {
		reports := 0
		memory := weakmem.New(weakmem.Config{Seed: uint64(seed),
			Report: func(*weakmem.Fault) bool { reports++; return true }})
		box := make([]byte, 512)
		if err := memory.Map(weakmem.Allocation{Addr: 0x1000, Data: box}); err != nil {
			panic(err)
		}
		world := simt.NewWorld(simt.Config{
			Memory: memory,
			Seed:   uint64(seed),
			Devices: []simt.Shape{{SMs: 2, ThreadsPerSM: 2048, BlocksPerSM: 32, SharedPerSM: 64 << 10, SharedPerBlock: 48 << 10,
				ThreadsPerBlock: 1024}},
		})
		grid := &simt.Grid{Image: program.Load(nil), Kernel: kernel, Dim: [3]int{2, 1, 1}, Block: [3]int{1, 1, 1},
			Args: binary.LittleEndian.AppendUint64(nil, 0x1000)}
		if err := world.Start(grid); err != nil {
			panic(err)
		}
		for world.Step(1) > 0 {
		}
		if reports > 0 {
			races++
		}
		if binary.LittleEndian.Uint32(box[256:]) != 42 {
			wrong++
		}
	}
	return races, wrong
}

func Example_fence() {
	races, wrong := deliver("fence.acq_rel.gpu;")
	fmt.Println("with fences:   ", races, "of 50 runs have a race,", wrong, "the wrong value")
	races, wrong = deliver("")
	fmt.Println("without:       ", races, "of 50 runs have a race,", wrong, "the wrong value")
	races, _ = deliver("fence.acq_rel.cta;")
	fmt.Println("of the block:  ", races, "of 50 runs have a race")
	// Output:
	// with fences:    0 of 50 runs have a race, 0 the wrong value
	// without:        50 of 50 runs have a race, 0 the wrong value
	// of the block:   50 of 50 runs have a race
}
