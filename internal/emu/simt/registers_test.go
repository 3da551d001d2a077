package simt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/simt"
)

// crowded is a kernel "crowded" that holds a number of values at the same time, and one
// "lean", which polls until a word is not 0.
func crowded(bounds string, values int) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry crowded(.param .u64 p) %s {\n", bounds)
	fmt.Fprintf(&b, ".reg .u64 %%rd<2>;\n.reg .u32 %%r<%d>;\n.reg .pred %%q;\nld.param.u64 %%rd1, [p];\n", values+1)
	for i := range values {
		fmt.Fprintf(&b, "ld.volatile.global.u32 %%r%d, [%%rd1];\n", i+1)
	}
	for i := 1; i < values; i++ {
		fmt.Fprintf(&b, "add.u32 %%r%d, %%r%d, %%r%d;\n", i+1, i, i+1)
	}
	fmt.Fprintf(&b, "st.volatile.global.u32 [%%rd1+4], %%r%d;\nret;\n}\n", values)
	b.WriteString(`.visible .entry lean(.param .u64 p) {
		.reg .u64 %rd<2>;
		.reg .u32 %r<2>;
		.reg .pred %q;
		ld.param.u64 %rd1, [p];
	again:
		ld.volatile.global.u32 %r1, [%rd1];
		setp.eq.u32 %q, %r1, 0;
		@%q bra again;
		ret;
	}`)
	return b.String()
}

// How many blocks fit follows what the launch bounds leave for a thread, if a kernel
// needs it.
func TestRegistersLimitBlocks(t *testing.T) {
	for _, c := range []struct {
		bounds    string
		values    int
		threads   int
		registers int
		fits      int
	}{
		{".maxntid 512 .minnctapersm 1", 118, 512, 128, 1},
		{".maxntid 512 .minnctapersm 1", 300, 512, 128, 1}, // the rest would be spilled
		{".maxntid 512 .minnctapersm 2", 300, 512, 64, 2},
		{".maxntid 576 .minnctapersm 2", 300, 576, 56, 2},
		{".maxntid 544", 300, 544, 96, 1}, // 17 warps: a quarter of the multiprocessor has 5 of them
		{".maxntid 512 .minnctapersm 1", 10, 512, 24, 4},
		{".maxnreg 40", 300, 1024, 40, 1},
		{".reqntid 256, 2, 1", 118, 512, 128, 1},
		{"", 118, 512, 128, 1},
		{"", 118, 128, 128, 4},
		{"", 118, 1024, 128, 0},
		{"", 400, 32, 255, 4}, // BlocksPerSM
	} {
		m := boot(t, crowded(c.bounds, c.values), options{})
		k, _ := m.image.Program.Kernel("crowded")
		require.Equal(t, c.registers, k.Registers, c)
		require.Equal(t, c.fits, m.world.Fits(0, k, c.threads, 0), c)
		if c.fits == 0 {
			require.ErrorContains(t, m.world.Start(m.grid("crowded", 1, c.threads, m.words(0, 0))),
				"does not fit a multiprocessor")
		}
	}
}

// A kernel that holds all registers of the device waits for one which it needs to change
// memory: the lean kernel has room for threads and blocks beside it, but no registers.
func TestNoRegistersForAnother(t *testing.T) {
	for _, values := range []int{40, 118} {
		one := small
		one.SMs = 1
		m := boot(t, crowded(".maxntid 512 .minnctapersm 1", values), options{devices: []simt.Shape{one}, stall: 100_000})
		word := m.words(1, 0)
		first, second := m.grid("lean", 2, 256, word+4), m.grid("crowded", 1, 512, word)
		require.NoError(t, m.world.Start(first))
		m.world.Step(1000)
		require.NoError(t, m.world.Start(second))
		for m.world.Step(10_000) > 0 {
		}
		if values == 40 {
			require.Nil(t, second.Fault(), "it runs beside the first")
			require.True(t, second.Done())
			continue
		}
		require.ErrorContains(t, second.Fault(), "no block became resident")
	}
}

// Blocks begin in the order of their numbers: each waits for the one before it, and there
// is room for few.
func TestBlocksBeginInOrder(t *testing.T) {
	each(t, func(t *testing.T, o options) {
		var order []int
		seen := map[int]bool{}
		o.trace = func(e simt.Event) {
			if !seen[e.Block[0]] {
				seen[e.Block[0]] = true
				order = append(order, e.Block[0])
			}
		}
		m := boot(t, crowded("", 4), o)
		m.run(m.grid("crowded", 40, 1024, m.words(0, 0)))
		room := 2 * 2 // blocks of 1024 threads on two multiprocessors
		for i, b := range order {
			require.Less(t, b, i+room, "a block begins while %d before it have not", room)
		}
		require.Len(t, order, 40)
	})
}
