package weakmem

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/test/must"
)

// TestPartlyOverlapping: strong accesses race if they overlap and their elements differ in size, as the bytes of a word
// of flags that is waited for as a whole; elements of vectors count, and not the vectors.
func TestPartlyOverlapping(t *testing.T) {
	how := How{Order: Relaxed, Scope: System, Line: 1}
	for _, c := range []struct {
		name                     string
		stored, loaded           int // bytes of an element
		storedMany, loadedMany   int // elements
		by                       string
		at                       uint64
		race                     bool
		atomic, release, acquire bool
	}{
		{name: "byte of a word", stored: 1, loaded: 8, at: 3, race: true},
		{name: "half of a word", stored: 4, loaded: 8, at: 4, race: true},
		{name: "word over halves", stored: 8, loaded: 4, race: true},
		{name: "the same", stored: 8, loaded: 8},
		{name: "element of a vector", stored: 4, loaded: 4, loadedMany: 4, at: 8},
		{name: "vectors of unlike elements", stored: 4, storedMany: 4, loaded: 8, loadedMany: 2, race: true},
		{name: "atomic half", stored: 4, loaded: 8, atomic: true, race: true},
		{name: "atomic word", stored: 8, loaded: 8, atomic: true},
		{name: "release and acquire of unlike sizes", stored: 4, loaded: 8, release: true, acquire: true, race: true},
	} {
		var found []*Fault
		m := New(Config{Report: func(f *Fault) bool { found = append(found, f); return true }})
		require.NoError(t, m.Map(Allocation{Addr: x, Data: make([]byte, 64), Name: "x"}))
		writer, reader := alone(m, 0), alone(m, 1)
		store, load := how, how
		if c.release {
			store.Order = Release
		}
		if c.acquire {
			load.Order = Acquire
		}
		if c.atomic {
			add := func(_ int, v uint64) uint64 { return v + 1 }
			require.Nil(t, writer.Atomic(0, 1, one(0, x+c.at), c.stored, nil, add, store), c.name)
		} else {
			require.Nil(t, writer.Store(0, 1, one(0, x+c.at), c.stored, registers(c.storedMany), store), c.name)
		}
		require.Nil(t, reader.Load(0, 1, one(0, x), c.loaded, registers(c.loadedMany), load), c.name)
		require.Equal(t, c.race, len(found) == 1, "%s: %v", c.name, found)
		if c.race {
			require.Contains(t, found[0].Error(), "overlap in part", c.name)
			require.Contains(t, found[0].Other.Why, "different sizes", c.name)
		}
	}
	// What the driver writes into a stream's word is as strong as what kernels write.
	var found []*Fault
	m := New(Config{Report: func(f *Fault) bool { found = append(found, f); return true }})
	require.NoError(t, m.Map(Allocation{Addr: x, Data: make([]byte, 64), Name: "x"}))
	must.Get(m.StoreRelease(x, 1, 4, Clock{}))
	reader := alone(m, 1)
	require.Nil(t, reader.Load(0, 1, one(0, x), 4, registers(1), how))
	require.Empty(t, found)
	reader = alone(m, 1) // which has not observed the store
	require.Nil(t, reader.Load(0, 1, one(0, x), 8, registers(1), how))
	require.Len(t, found, 1)
}

// registers are those of a vector of n elements, at least one.
func registers(n int) []*alu.Lanes {
	list := []*alu.Lanes{{}}
	for len(list) < n {
		list = append(list, &alu.Lanes{})
	}
	return list
}

// alone is a block of a kernel of its own.
func alone(m *Memory, device int) *Block {
	return m.Begin(device, "k", Clock{}).Block([3]int{}, [3]int{32, 1, 1}, 0)
}
