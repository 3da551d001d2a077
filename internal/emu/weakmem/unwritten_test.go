package weakmem

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/must"
)

// A copy to the host of what nobody wrote is found, but for padding.
func TestUnwrittenToHost(t *testing.T) {
	for name, c := range map[string]struct {
		written [][2]int // from, to
		size    int
		found   bool
	}{
		"all written":            {[][2]int{{0, 128}}, 128, false},
		"nothing":                {nil, 128, true},
		"one word":               {nil, 4, true},
		"padding":                {[][2]int{{0, 1}, {4, 10}, {12, 13}, {16, 22}}, 24, false},
		"31 bytes":               {[][2]int{{0, 33}, {64, 128}}, 128, false},
		"half":                   {[][2]int{{0, 64}}, 128, true},
		"32 bytes":               {[][2]int{{0, 32}, {64, 128}}, 128, true},
		"structs of 64 bytes":    {[][2]int{{0, 4}, {64, 68}}, 128, false},
		"rows, not as alignment": {[][2]int{{0, 4}, {44, 48}, {88, 128}}, 128, true},
	} {
		t.Run(name, func(t *testing.T) {
			var faults []*Fault
			m := New(Config{Report: func(f *Fault) bool { faults = append(faults, f); return true }})
			require.NoError(t, m.Map(Allocation{Addr: 0x1000, Data: make([]byte, 128), Written: make([]uint64, 2), Name: "x"}))
			require.NoError(t, m.Map(Allocation{Addr: 0x2000, Data: make([]byte, 128), Device: -1, Name: "pinned"}))
			var now Clock
			for _, w := range c.written {
				now = must.Get(m.Write(0x1000+uint64(w[0]), make([]byte, w[1]-w[0]), now))
			}
			must.Get(m.Read(make([]byte, c.size), 0x1000, now))
			require.Equal(t, c.found, len(faults) == 1, "%v", faults)
			m.found = map[finding]*Fault{}
			must.Get(m.Copy(0x2000, 0x1000, c.size, now))
			require.Len(t, faults, 2*b2i(c.found))
		})
	}
}
