package device

import (
	"context"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/kernels"
)

// small is a Config that takes no time.
func small(d cuda.Driver) Config {
	return Config{
		Driver: d, Types: []kernels.DataType{kernels.Float32, kernels.BFloat16, kernels.Uint8},
		Ops: []kernels.RedOp{kernels.Sum, kernels.Avg, kernels.BitAnd}, Sources: []int{1, 2, 8}, Sizes: []int64{1 << 10, 48},
		Repetitions: 3, Table: io.Discard,
	}
}

func TestFirstUseFails(t *testing.T) {
	need.Tool(t, "sh")
	for want, script := range map[string]string{
		"exit status 3: no luck":       "echo -n no luck >&2; exit 3",
		"invalid character 'x'":        "echo x",
		"unexpected end of JSON input": "true",
	} {
		_, err := childFirstUse(context.Background(), []string{"sh", "-c", script}, "int8", "sum", t.TempDir())
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "first use of sum of int8")
	}
}

func TestCheck(t *testing.T) {
	good := small(nil)
	require.NoError(t, good.Check())
	for want, change := range map[string]func(*Config){
		"-k 9: a kernel combines 1 to 8":  func(c *Config) { c.Sources = []int{1, 9} },
		"-k 0: ":                          func(c *Config) { c.Sources = []int{0} },
		"-b 17: want a multiple of 16":    func(c *Config) { c.Sizes = []int64{17} },
		"bitwise operators need integers": func(c *Config) { c.Types, c.Ops = c.Types[:1], c.Ops[2:] },
	} {
		cfg := small(nil)
		change(&cfg)
		require.ErrorContains(t, cfg.Check(), want)
	}
}

func TestSetsPassTheCache(t *testing.T) {
	const l2 = 60 << 20
	for _, c := range []struct {
		sources int
		size    int64
		want    int
	}{{1, 1 << 30, 1}, {8, 1 << 30, 1}, {1, 64 << 20, 2}, {1, 1 << 20, 64}, {8, 16 << 20, 2}} {
		n := numSets(c.sources, c.size, l2)
		require.Equal(t, c.want, n, c)
		require.Equal(t, n*(c.sources+1)*int(c.size), poolBytes(c.sources, c.size, l2))
	}
	p := &pool{base: 0x1000}
	seen := map[uintptr]bool{}
	for _, s := range p.cut(3, 1<<20, 1<<20) {
		for _, r := range append(s.srcs, s.dst) {
			require.False(t, seen[r.Ptr()])
			seen[r.Ptr()] = true
			require.Less(t, r.Ptr()+uintptr(r.Len()), p.base+uintptr(poolBytes(3, 1<<20, 1<<20))+1)
		}
	}
}

func TestRandomFloatsAreFinite(t *testing.T) {
	b := randomBlock(kernels.Float32, 1<<16)
	for i := 0; i < len(b); i += 4 {
		x := math.Float32frombits(uint32(b[i]) | uint32(b[i+1])<<8 | uint32(b[i+2])<<16 | uint32(b[i+3])<<24)
		require.Less(t, math.Abs(float64(x)), 2.0)
	}
	require.NotEqual(t, randomBlock(kernels.Uint8, 64), randomBlock(kernels.Int8, 64))
}

func TestMedian(t *testing.T) {
	require.Equal(t, Time{Median: 3, Min: 1, Iterations: 9}, timeOf([]float64{5, 1, 3}, 9))
	require.Equal(t, Time{Median: 4, Min: 4, Iterations: 1}, timeOf([]float64{4}, 1))
}
