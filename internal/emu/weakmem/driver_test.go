package weakmem

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/test/must"
)

// A race is found wherever in a long range it is, and nowhere else.
func TestLongRanges(t *testing.T) {
	const n, at = 5*pageBytes + 100, uint64(0x100000)
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		s := newScene(t, Config{})
		require.NoError(t, s.m.Map(Allocation{Addr: at, Data: make([]byte, n), Name: "long"}))
		var after Clock
		for range rng.IntN(3) { // what is ordered before, so that pages have cells, or none
			from := rng.IntN(n)
			c := must.Get(s.m.Set(at+uint64(from), []byte{1}, rng.IntN(n-from+1), after))
			after = c
		}
		from := rng.IntN(n/4+1) * 4
		size := rng.IntN(n - from + 1)
		if rng.IntN(3) == 0 {
			from, size = 0, rng.IntN(6)*pageBytes
		}
		g := s.m.Begin(0, "k", after)
		b := g.Block([3]int{}, [3]int{32, 1, 1}, 0)
		word := uint64(rng.IntN(n/4) * 4)
		require.Nil(t, b.Store(0, lane0, row(at+word, 4), 4, []*alu.Lanes{row(7, 0)}, How{Line: 1}))
		must.Get(s.m.Read(make([]byte, size), at+uint64(from), after))
		races := word+4 > uint64(from) && word < uint64(from+size)
		require.Equal(t, races, len(s.faults) > 0, "%d bytes from %d, a store at %d", size, from, word)
	}
}

// Where a race is to stop it, an operation of the driver says so and does nothing more.
func TestDriverStops(t *testing.T) {
	const written, free = uint64(0x1000), uint64(0x1020)
	for name, f := range map[string]func(m *Memory) (Clock, error){
		"copy from it": func(m *Memory) (Clock, error) { return m.Copy(free, written, 16, Clock{}) },
		"copy to it":   func(m *Memory) (Clock, error) { return m.Copy(written, free, 16, Clock{}) },
		"set":          func(m *Memory) (Clock, error) { return m.Set(written, []byte{9}, 16, Clock{}) },
		"read":         func(m *Memory) (Clock, error) { return m.Read(make([]byte, 16), written, Clock{}) },
		"write":        func(m *Memory) (Clock, error) { return m.Write(written, make([]byte, 16), Clock{}) },
		"store":        func(m *Memory) (Clock, error) { return m.StoreRelease(written, 9, 4, Clock{}) },
		"load":         func(m *Memory) (Clock, error) { _, c, err := m.LoadAcquire(written, 4, Clock{}); return c, err },
	} {
		s := newScene(t, Config{Report: func(*Fault) bool { return false }})
		require.Nil(t, store(s.a, 0, lane0, written, How{Line: 1}))
		s.m.settle()
		a, _ := s.m.Find(written)
		before := append([]byte{}, a.Data...)
		c, err := f(s.m)
		var fault *Fault
		require.ErrorAs(t, err, &fault, name)
		require.Equal(t, Race, fault.Kind, name)
		require.Equal(t, -1, fault.Device)
		require.Equal(t, Clock{}, c, name)
		require.Equal(t, before, a.Data, name)
	}
	for name, f := range map[string]func(m *Memory) error{
		"copy from nowhere": func(m *Memory) error { _, err := m.Copy(written, 0x9000, 16, Clock{}); return err },
		"copy to nowhere":   func(m *Memory) error { _, err := m.Copy(0x9000, written, 16, Clock{}); return err },
		"set":               func(m *Memory) error { _, err := m.Set(0x9000, []byte{9}, 16, Clock{}); return err },
		"read":              func(m *Memory) error { _, err := m.Read(make([]byte, 16), 0x9000, Clock{}); return err },
		"write":             func(m *Memory) error { _, err := m.Write(0x9000, make([]byte, 16), Clock{}); return err },
		"store":             func(m *Memory) error { _, err := m.StoreRelease(0x9000, 9, 4, Clock{}); return err },
		"load":              func(m *Memory) error { _, _, err := m.LoadAcquire(0x9000, 4, Clock{}); return err },
		"peek":              func(m *Memory) error { _, err := m.Peek(0x9000, 4); return err },
		"over its end":      func(m *Memory) error { _, err := m.Write(written+60, make([]byte, 8), Clock{}); return err },
	} {
		var fault *Fault
		require.ErrorAs(t, f(newScene(t, Config{}).m), &fault, name)
		require.Equal(t, OutOfBounds, fault.Kind, name)
	}
	for name, f := range map[string]func(m *Memory) error{
		"store": func(m *Memory) error { _, err := m.StoreRelease(written+2, 9, 4, Clock{}); return err },
		"load":  func(m *Memory) error { _, _, err := m.LoadAcquire(written+4, 8, Clock{}); return err },
		"peek":  func(m *Memory) error { _, err := m.Peek(written+1, 4); return err },
	} {
		var fault *Fault
		require.ErrorAs(t, f(newScene(t, Config{}).m), &fault, name)
		require.Equal(t, Misaligned, fault.Kind, name)
	}
	s := newScene(t, Config{})
	must.Get(s.m.Set(written, []byte{1, 2, 3}, 8, Clock{}))
	a, _ := s.m.Find(written)
	require.Equal(t, []byte{1, 2, 3, 1, 2, 3, 1, 2, 0}, a.Data[:9])
	must.Get(s.m.Copy(free, written, -1, Clock{}))
	must.Get(s.m.Set(written, []byte{7}, -1, Clock{}))
	require.EqualValues(t, 1, a.Data[0])
}

// What the driver releases with a flag is acquired by who loads the flag's old value, after the driver has overwritten
// it.
func TestOldValueOfDriver(t *testing.T) {
	const data, flag = 0x1000, 0x1010
	seen := 0
	for seed := range uint64(50) {
		m := New(Config{Seed: seed, OldLoads: true, Report: func(f *Fault) bool { t.Error(f); return true }})
		require.NoError(t, m.Map(Allocation{Addr: data, Data: make([]byte, 32), Name: "x"}))
		reader := &thread{on: m.Begin(0, "k", Clock{}).Block([3]int{}, [3]int{32, 1, 1}, 0), line: 1}
		now := must.Get(m.Read(make([]byte, 4), data, Clock{}))
		for _, v := range []uint64{1, 2} {
			now = must.Get(m.StoreRelease(flag, v, 4, now))
		}
		require.True(t, ld(0, flag, Relaxed, System)(reader))
		if reader.r[0] != 1 {
			continue
		}
		seen++
		require.True(t, fence(System)(reader))
		require.True(t, st(data, 5, Weak, System)(reader), "the driver has read it before it stored 1")
	}
	require.Positive(t, seen, "no seed shows the old value")
}
