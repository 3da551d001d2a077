package weakmem

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/mem"
)

// Which bytes were written is as a list of bools has it.
func TestWritten(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const n = 200
	one, two := &Allocation{Data: make([]byte, n), Written: make([]uint64, 4)},
		&Allocation{Data: make([]byte, n), Written: make([]uint64, 4)}
	models := map[*Allocation][]bool{one: make([]bool, n), two: make([]bool, n)}
	for range 2000 {
		s, other := one, two
		if rng.IntN(2) == 0 {
			s, other = two, one
		}
		off := rng.IntN(n + 1)
		size := rng.IntN(min(130, n-off) + 1)
		switch rng.IntN(6) {
		case 0:
			from := rng.IntN(n - size + 1)
			s.setWritten(uint64(off), uint64(size)) // as a copy does first
			s.copyWritten(uint64(off), other, uint64(from), uint64(size))
			copy(models[s][off:off+size], models[other][from:from+size])
		case 1, 2:
			size = min(size, 3)
			s.setWritten(uint64(off), uint64(size))
			for i := range size {
				models[s][off+i] = true
			}
		case 3:
			clear(s.Written)
			clear(models[s])
		}
		first := slices.Index(models[s][off:off+size], false)
		bad, found := s.unwritten(uint64(off), uint64(size))
		require.Equal(t, first >= 0, found)
		if found {
			require.EqualValues(t, off+first, bad)
		}
	}
	all := &Allocation{Data: make([]byte, n)}
	_, found := all.unwritten(0, n)
	require.False(t, found)
	all.setWritten(0, n)
	all.copyWritten(0, one, 0, n)
	require.Nil(t, all.Written)
	clear(one.Written)
	one.copyWritten(0, all, 0, n)
	one.Expose(5, 70)
	require.True(t, one.Foreign && one.foreign() && !two.foreign())
	bad, _ := one.unwritten(5, 71)
	require.EqualValues(t, 75, bad)
	require.True(t, (&Allocation{Device: -1}).foreign())
}

// Memory is mapped without overlap, and what is not mapped is described by what lies near.
func TestMapping(t *testing.T) {
	m := New(Config{})
	at := func(addr uint64, n int, name string) error {
		return m.Map(Allocation{Addr: addr, Data: make([]byte, n), Name: name})
	}
	const far = 1 << 40
	require.NoError(t, at(0x2000, 0x100, "b"))
	require.NoError(t, at(0x1000, 0x100, "a"))
	require.NoError(t, at(0x2100, 0x10, "c"))
	for want, err := range map[string]error{
		`weakmem: mapping "x" at 0x5: no bytes`: at(5, 0, "x"),
		`weakmem: mapping "x" at 0x5000: 65 bytes need 2 words of Written, got 1`: m.Map(Allocation{Addr: 0x5000,
			Data: make([]byte, 65), Written: make([]uint64, 1), Name: "x"}),
		`weakmem: mapping "x" at 0x10ff: overlaps "a" at 0x1000`: at(0x10ff, 1, "x"),
		`weakmem: mapping "x" at 0xfff: overlaps "a" at 0x1000`:  at(0xfff, 2, "x"),
		`weakmem: mapping "x" at 0x1100: overlaps "b" at 0x2000`: at(0x1100, 0xf01, "x"),
		"weakmem: nothing is mapped at 0x1001":                   m.Unmap(0x1001),
		"weakmem: nothing is mapped at 0x3000":                   m.Unmap(0x3000),
		"weakmem: stick: no bit 8 at 0x1000":                     m.Stick(0x1000, 8, true),
		"weakmem: stick: no bit -1 at 0x1000":                    m.Stick(0x1000, -1, true),
		"weakmem: stick: no bit 0 at 0x1100":                     m.Stick(0x1100, 0, true),
	} {
		require.EqualError(t, err, want)
	}
	for addr, want := range map[uint64]string{0xfff: "", 0x1000: "a", 0x10ff: "a", 0x1100: "", 0x1fff: "", 0x2000: "b",
		0x20ff: "b", 0x2100: "c", 0x210f: "c", 0x2110: "", far: ""} {
		s, ok := m.Find(addr)
		require.Equal(t, want != "", ok, "%#x", addr)
		if ok {
			require.Equal(t, want, s.Name)
		}
	}
	gone := &atomic.Uint32{}
	require.NoError(t, m.Map(Allocation{Addr: 0x4000, Data: make([]byte, 0x10), Name: "theirs", Gone: gone}))
	for _, c := range []struct {
		addr uint64
		want string
	}{
		{0xfff, "a null pointer"}, {0x1100, "just after the end of a (256 bytes at 0x1000)"},
		{0x1101, "1 bytes after the end of a (256 bytes at 0x1000)"},
		{0x1880, "1920 bytes after the end of a (256 bytes at 0x1000)"},
		{0x1881, "1919 bytes before b (256 bytes at 0x2000)"}, {0x20f8, "reaches beyond the end of b (256 bytes)"},
		{0x2110, "just after the end of c (16 bytes at 0x2100)"}, {0x4008, "reaches beyond the end of theirs (16 bytes)"},
		{0x4010 + 1<<32, "4294967296 bytes after the end of theirs (16 bytes at 0x4000)"},
		{0x4011 + 1<<32, "nothing is mapped near it"}, {far, "nothing is mapped near it"},
	} {
		require.Equal(t, c.want, m.allocations.near(c.addr), "%#x", c.addr)
	}
	require.Equal(t, "nothing is mapped near it", new(allocationTable).near(nullPage), "no null pointer any more")
	gone.Store(1)
	require.Equal(t, "theirs+0x8, freed by the process whose memory it is", m.allocations.near(0x4008))
	require.NoError(t, m.Unmap(0x2000))
	require.Equal(t, "b+0xff, freed", m.allocations.near(0x20ff))
	require.NoError(t, at(0x20f0, 0x10, "d"))
	require.NotContains(t, m.allocations.near(0x2000), "freed", "its place is another's")

	// What was freed is remembered, the newest of it.
	for i := range freedKept + 1 {
		require.NoError(t, at(far+uint64(i)<<12, 1, fmt.Sprint(i)))
	}
	for i := range freedKept + 1 {
		require.NoError(t, m.Unmap(far+uint64(i)<<12))
	}
	require.Len(t, m.allocations.freed, freedKept)
	require.NotContains(t, m.allocations.near(far), "0+0x0")
	require.Equal(t, "1+0x0, freed", m.allocations.near(far+1<<12))
}

// A bad cell keeps its bit until the memory is unmapped.
func TestStuck(t *testing.T) {
	s := newScene(t, Config{Plain: true})
	require.NoError(t, s.m.Stick(0x1005, 3, true))
	require.NoError(t, s.m.Stick(0x1006, 0, false))
	got, _ := s.m.Find(0x1000)
	require.EqualValues(t, 8, got.Data[5])
	require.Nil(t, s.a.Store(0, lane0, row(0x1004, 4), 4, []*alu.Lanes{row(0xffff00ff, 0)}, How{}))
	s.m.settle()
	require.Equal(t, []byte{0xff, 0x08, 0xfe, 0xff}, got.Data[4:8])
	require.NoError(t, s.m.Unmap(0x1000))
	require.Empty(t, s.m.stuck)
}

// Elements of all sizes, aligned and not, are stored and replaced whole.
func TestReplace(t *testing.T) {
	for _, size := range []int{1, 2, 4, 8} {
		for off := range 8 {
			buffer := make([]uint64, 4)
			p := mem.Of(buffer).Bytes()[8+off:]
			mask := ^uint64(0) >> (64 - 8*size)
			const v, w = 0x1122334455667788, 0x99aabbccddeeff01
			strongPut(p, size, v)
			require.Equal(t, v&mask, strongGet(p, size), "%d at %d", size, off)
			require.Equal(t, v&mask, get(p, size))
			require.False(t, replace(p, size, w&mask, 5))
			require.Equal(t, v&mask, get(p, size))
			require.True(t, replace(p, size, v&mask, w&mask))
			require.Equal(t, uint64(w)&mask, get(p, size))
			for i, b := range mem.Of(buffer).Bytes() {
				require.Equal(t, i >= 8+off && i < 8+off+size, b != 0, "only the element")
			}
		}
	}
}
