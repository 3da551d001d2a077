package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sched/sim"
)

// What Format writes, Parse reads, and it takes the same time.
func TestModelsAsText(t *testing.T) {
	again := func(m sim.Model) sim.Model {
		text, err := sim.Format(m)
		require.NoError(t, err)
		back, err := sim.Parse(text)
		require.NoError(t, err, "%s", text)
		require.Equal(t, m.String(), back.String())
		return back
	}
	for name, m := range sim.Presets {
		want, err := sim.Estimate(ring.AllReduce{N: 32}, m, 1<<20)
		require.NoError(t, err)
		got, err := sim.Estimate(ring.AllReduce{N: 32}, again(m), 1<<20)
		require.NoError(t, err)
		require.InEpsilon(t, want, got, 1e-9, name)
	}
	weak := sim.NVLink
	weak.Weak, weak.WeakBy = []int{3}, 2
	weak.SlotBytes, weak.Slots = weak.SlotBytes/2, weak.Slots+1
	back := again(weak)
	require.Equal(t, weak.Weak, back.Weak)
	require.Equal(t, weak.WeakBy, back.WeakBy)
	require.Equal(t, []int{weak.SlotBytes, weak.Slots}, []int{back.SlotBytes, back.Slots})

	uneven := sim.Ethernet25G
	uneven.Nodes = []int{8, 8, 7}
	back = again(uneven)
	require.Equal(t, uneven.Nodes, back.Nodes)
	require.Contains(t, back.String(), "nodes of 7 to 8; inside")
}

func TestModelLikeAPreset(t *testing.T) {
	m, err := sim.Parse([]byte(`{"like": "nvlink", "name": "mine", "node_ranks": 4,
		"between": {"what": "two cards", "bandwidth": "400G", "shared": "100 GB/s", "latency": "3us"}, "combine": "none"}`))
	require.NoError(t, err)
	want := sim.NVLink
	want.Name, want.NodeRanks, want.Reduce, want.Between = "mine", 4, 0, "two cards"
	want.Inter.Bandwidth, want.Inter.Shared, want.Inter.Latency = 50e9, 100e9, 3e-6
	require.Equal(t, want, m)
	require.Equal(t, "mine: nodes of 4; inside NVLink between H200s, 362 GB/s a rank, 740ns; between them two cards, 50 "+
		"GB/s a rank, 100 GB/s a node, 3µs", m.String())

	for text, why := range map[string]string{
		`{"like": "nvlnk"}`:                      `like "nvlnk": there is no such preset`,
		`{"latency": "3us"}`:                     `unknown field "latency"`,
		`{"inside": {"bandwidth": "fast"}}`:      `rate "fast": write bits a second such as 400G`,
		`{"inside": {"latency": "3"}}`:           `missing unit in duration`,
		`[]`:                                     `cannot unmarshal array`,
		`{"like": "shm", "copy": "-40 GB/s"}`:    `rate "-40 GB/s"`,
		`{"like": "shm", "copy": "1e308TB"}`:     `rate "1e308TB"`,
		`{"like": "shm", "copy": "1e-320B"}`:     `rate "1e-320B"`,
		`{"like": "shm"} {}`:                     `something follows`,
		`{"like": "shm", "node_ranks": "eight"}`: `cannot unmarshal string`,
	} {
		_, err := sim.Parse([]byte(text))
		require.ErrorContains(t, err, why)
	}
}

func TestRates(t *testing.T) {
	for text, want := range map[string]float64{
		"400G": 50e9, "400 Gb/s": 50e9, "400Gbit/s": 50e9, "50GB": 50e9, "50 GB/s": 50e9, "8": 1, "1B": 1, "1.6T": 200e9,
		"100m": 12.5e6,
	} {
		got, err := sim.ParseRate(text)
		require.NoError(t, err)
		require.Equal(t, want, got, text)
		got, err = sim.ParseRate(sim.FormatRate(want))
		require.NoError(t, err)
		require.Equal(t, want, got, sim.FormatRate(want))
	}
	for _, text := range []string{"", "G", "fast", "0", "-1G", "1Q", "inf", "NaN", "GB", "1e999"} {
		_, err := sim.ParseRate(text)
		require.Error(t, err, text)
	}
}
