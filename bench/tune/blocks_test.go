package tune

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bench"
)

// sized is a curve of one algorithm, ring, with its times with all blocks, us, and with fewer blocks, less.
func sized(us []float64, less [][]float64) *curve {
	coll, err := bench.Find("allreduce")
	if err != nil {
		panic(err)
	}
	k := &curve{Collective: coll, algos: []string{"ring"}, registered: 1}
	for j := range us {
		k.counts, k.sizes, k.asked = append(k.counts, 1<<j), append(k.sizes, 4<<j), append(k.asked, 4<<j)
		k.us, k.less, k.work = append(k.us, us[j:j+1]), append(k.less, [][]float64{less[j]}), append(k.work, []int{0})
		if less[j] != nil {
			k.work[j][0] = 128
		}
	}
	return k
}

// A row takes the fewest blocks that lose little at all of its sizes.
func TestFewest(t *testing.T) {
	c := &Config{Blocks: []int{8, 32, 64}}
	for name, test := range map[string]struct {
		us          []float64
		less        [][]float64
		blocks, few int
	}{
		"not tried":                   {[]float64{3, 4}, [][]float64{nil, nil}, 0, 0},
		"none is enough":              {[]float64{100}, [][]float64{{200, 150, 120}}, 0, 0},
		"enough for most":             {[]float64{100}, [][]float64{{200, 110, 104}}, maxBlocks, 32},
		"for both":                    {[]float64{100}, [][]float64{{111, 103, 101}}, 32, 8},
		"the same":                    {[]float64{100}, [][]float64{{101, 101, 101}}, 8, 8},
		"at every size":               {[]float64{100, 200}, [][]float64{{101, 100, 100}, {300, 205, 202}}, 32, 32},
		"where there is work":         {[]float64{3, 100}, [][]float64{nil, {130, 109, 102}}, 64, 32},
		"fewer may be quicker":        {[]float64{100}, [][]float64{{99, 90, 92}}, 32, 8},
		"one that failed is not less": {[]float64{100}, [][]float64{{inf, 101, inf}}, 32, 32},
		"bandwidth, not time":         {[]float64{100}, [][]float64{{103.05, 200, 200}}, 8, 8},
	} {
		t.Run(name, func(t *testing.T) {
			k := sized(test.us, test.less)
			blocks, few := k.blocksOf(c, 0, 0, len(test.us)-1)
			require.Equal(t, []int{test.blocks, test.few}, []int{blocks, few})
			rows := k.rows(c, 2)
			require.Len(t, rows, 1)
			require.Equal(t, []int{test.blocks, test.few}, []int{rows[0].Blocks, rows[0].Few})
		})
	}
	k := sized([]float64{1}, [][]float64{nil})
	k.less = nil
	blocks, few := k.blocksOf(c, 0, 0, 0)
	require.Zero(t, blocks+few, "nothing was tried")
}

func TestTries(t *testing.T) {
	k := sized([]float64{1, 2}, [][]float64{nil, {inf, inf, inf}})
	k.work[1][0] = 33
	require.True(t, k.tries(0, 32))
	require.False(t, k.tries(0, 33))
	require.False(t, k.tries(-1, 8))
}

func TestPrintBlocks(t *testing.T) {
	var b bytes.Buffer
	c := &Config{Blocks: []int{8, 32, 64}}
	sized([]float64{3, 100}, [][]float64{nil, {130, 109, 102}}).printBlocks(&b, c)
	require.Equal(t, `
# allreduce with fewer blocks, us; * default, + efficiency
#   size (B)   algorithm          8          32          64         all
           8        ring     130.00      109.00+     102.00*     100.00
`, b.String())
	b.Reset()
	sized([]float64{math.Pi}, [][]float64{nil}).printBlocks(&b, c)
	require.Empty(t, b.String())
}

// work is as many blocks as the library would choose, and any number where it has no answer.
func TestWork(t *testing.T) {
	k := sized([]float64{1, 1}, [][]float64{nil, nil})
	k.counts[1] = 1 << 24
	of := func(path string, j int) int {
		return (&tuning{cfg: &Config{Type: ringo.Float32}, ranks: 2, gpu: "NVIDIA H200", path: path}).work(k, j, 0)
	}
	require.Positive(t, of("p2p", 0))
	require.Less(t, of("p2p", 1), math.MaxInt)
	require.Equal(t, math.MaxInt, of("no such path", 0))
}
