package check

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bench/meter"
)

// TestHeatOfHosts: for pairs within hosts, text shows the hosts with a bad pair, or else the first host.
func TestHeatOfHosts(t *testing.T) {
	m := &heatMap{Title: "links", Unit: "GB/s", Low: true, Places: []string{"a/0", "a/1", "b/0", "b/1"},
		Values: map[[2]int]float64{{0, 1}: 5, {3, 2}: 7}, Bad: map[[2]int]bool{}}
	a := &heatMap{Title: "links, host a, the first of 2; -html has all", Unit: "GB/s", Low: true,
		Places: []string{"a/0", "a/1"},
		Values: map[[2]int]float64{{0, 1}: 5}, Bad: map[[2]int]bool{}}
	require.Equal(t, []*heatMap{a}, m.parts())

	m.Bad[[2]int{3, 2}] = true
	b := &heatMap{Title: "links, host b", Unit: "GB/s", Low: true, Places: []string{"b/0", "b/1"},
		Values: map[[2]int]float64{{1, 0}: 7}, Bad: map[[2]int]bool{{1, 0}: true}}
	require.Equal(t, []*heatMap{b}, m.parts())

	m.Values[[2]int{1, 2}] = 6
	require.Equal(t, []*heatMap{m}, m.parts(), "a pair of two hosts")
	one := &heatMap{Places: []string{"a/0", "a/1"}, Values: map[[2]int]float64{{0, 1}: 5}}
	require.Equal(t, []*heatMap{one}, one.parts(), "one host")
}

// Of many places those with a finding are shown, and the first others.
func TestHeatOfSome(t *testing.T) {
	m := &heatMap{Title: "links", Unit: "µs", Places: []string{"a", "b", "c", "d", "e"},
		Values: map[[2]int]float64{{0, 1}: 1, {0, 2}: 2, {3, 0}: 3, {4, 3}: 4}, Bad: map[[2]int]bool{{4, 3}: true}}
	require.Equal(t, &heatMap{Title: "links, 3 of 5, those with findings first; -json has all", Unit: "µs",
		Places: []string{"a", "d", "e"},
		Values: map[[2]int]float64{{1, 0}: 3, {2, 1}: 4}, Bad: map[[2]int]bool{{2, 1}: true}}, m.some(3))
	require.Same(t, m, m.some(5))
	require.Equal(t, []string{"e"}, (&heatMap{Places: m.Places, Bad: map[[2]int]bool{{4, 4}: true}}).some(1).Places)
}

// TestBadMemory: wrong words are listed by address, three at most, with bits that are always wrong in the same way.
func TestBadMemory(t *testing.T) {
	wrong := func(address, want, got uint64) meter.Wrong {
		return meter.Wrong{Address: address, Offset: address - 0x1000, Want: want, Got: got}
	}
	for want, list := range map[string][]meter.Wrong{
		"0x1040 (offset 0x40): bit 3 always 1": {wrong(0x1040, 0, 8),
			wrong(0x1040, 1, 9)},
		"0x1040 (offset 0x40): bit 0,2 always 0":                {wrong(0x1040, 5, 0)},
		"0x1040 (offset 0x40): bit 0 always 0, bit 63 always 1": {wrong(0x1040, 1, 1<<63)},
		"0x1040 (offset 0x40): changes": {wrong(0x1040, 0, 8),
			wrong(0x1040, 8, 0)},
		"0x1040 (offset 0x40): bit 0,1,2,3 always 1": {wrong(0x1040, 0, 15)},
		"0x1040 (offset 0x40): 5 bits always 1":      {wrong(0x1040, 0, 31)},
		"0x1008 (offset 0x8): bit 1 always 1; 0x1010 (offset 0x10): bit 0 always 1": {wrong(0x1010, 0, 1),
			wrong(0x1008, 0, 2)},
	} {
		require.Equal(t, want, badMemory(list))
	}
	var many []meter.Wrong
	for i := range uint64(5) {
		many = append(many, wrong(0x1000+8*i, 0, 1))
	}
	require.Equal(t, badMemory(many[:3])+"; and 2 more", badMemory(many), fmt.Sprint(many))
}
