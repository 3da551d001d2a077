package device

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
)

// small is a Config that takes no time on the emulator.
func small(d cuda.Driver) Config {
	return Config{
		Driver: d, Types: tier.Some(2, []kernels.DataType{kernels.Float32, kernels.BFloat16, kernels.Uint8}),
		Ops: []kernels.RedOp{kernels.Sum, kernels.Avg, kernels.BitAnd}, Sources: []int{1, 2, 8}, Sizes: []int64{1 << 10, 48},
		Repetitions: 3, Table: io.Discard,
	}
}

func TestRun(t *testing.T) {
	cfg := small(gputest.Driver(t))
	var table strings.Builder
	cfg.Table = &table
	cfg.FirstUse = []string{"sh", "-c",
		`test -d "$CUDA_CACHE_PATH" && echo "{\"type\": \"$1\", \"op\": \"$2\", \"total_ms\": 7}"`, "sh"}
	r, err := Run(context.Background(), cfg)
	require.NoError(t, err)

	combines := 2*len(cfg.Types) + 1 // floats have no bitand
	require.Len(t, r.Rows, 2*(1+3*combines))
	for _, row := range r.Rows {
		require.Zero(t, row.Wrong, row)
		require.Positive(t, row.Checked, row)
		require.Equal(t, row.Size*int64(row.Sources+1), row.Moved)
	}
	require.Equal(t, Row{What: "combine", Type: "uint8", Op: "bitand", Sources: 8, Size: 48, Moved: 432,
		Checked: r.Rows[len(r.Rows)-1].Checked},
		func(r Row) Row { r.Time, r.Bandwidth, r.OfCopy = Time{}, 0, 0; return r }(r.Rows[len(r.Rows)-1]))
	require.Len(t, r.Launches, 2)
	require.Len(t, r.First, 2*combines)
	require.Equal(t, FirstUse{Type: "float32", Op: "sum", Cache: "cold", Total: 7}, r.First[0])
	require.Positive(t, r.PTX.Modules)
	require.Less(t, r.PTX.Embedded, 6<<20)
	require.Contains(t, table.String(), "bitand")
	require.Equal(t, gputest.OnGPU(), !strings.Contains(table.String(), "times mean nothing"))

	file := filepath.Join(t.TempDir(), "probe.json")
	require.NoError(t, r.Save(file))
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	var again Report
	require.NoError(t, json.Unmarshal(b, &again))
	require.Equal(t, *r, again)
}

// deaf is a driver that forgets to launch kernels.
type deaf struct{ cuda.Driver }

func (deaf) LaunchKernel(cuda.Function, *cuda.Launch, []byte) error { return nil }

func TestWrongResultsAreFound(t *testing.T) {
	cfg := small(deaf{gputest.Driver(t)})
	cfg.Types, cfg.Ops, cfg.Sources = cfg.Types[:1], cfg.Ops[:1], []int{2}
	r, err := Run(context.Background(), cfg)
	var wrong *WrongError
	require.ErrorAs(t, err, &wrong)
	require.NotNil(t, r)
	require.Zero(t, r.Rows[0].Wrong) // the copy is not by a kernel
	require.Greater(t, r.Rows[1].Wrong, r.Rows[1].Checked*9/10)
}

func TestFirstUse(t *testing.T) {
	u, err := MeasureFirstUse(gputest.Driver(t), 0, kernels.BFloat16, kernels.Max)
	require.NoError(t, err)
	require.Equal(t, "bfloat16", u.Type)
	require.Equal(t, "max", u.Op)
	require.Positive(t, u.Total)
	require.InDelta(t, u.Total, u.Load+u.Run, 1e-9)
}

func TestFirstUseFails(t *testing.T) {
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
		"9 sources: a kernel combines 1 to 8": func(c *Config) { c.Sources = []int{1, 9} },
		"0 sources":                           func(c *Config) { c.Sources = []int{0} },
		"17 bytes: want a multiple of 16":     func(c *Config) { c.Sizes = []int64{17} },
		"bitwise operators need integers":     func(c *Config) { c.Types, c.Ops = c.Types[:1], c.Ops[2:] },
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

// TestLaunchFromC needs the driver; without one the C side says so.
func TestLaunchFromC(t *testing.T) {
	lib, err := filepath.Abs("../../liblaunch.so") // beside the test binaries on a machine without gcc
	require.NoError(t, err)
	if _, err := os.Stat(lib); err != nil {
		gcc := need.Tool(t, "gcc")
		lib = filepath.Join(t.TempDir(), "liblaunch.so")
		out, err := exec.Command(gcc, "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", lib, "testdata/launch.c",
			"-ldl").CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	cfg := small(gputest.Driver(t))
	cfg.Sizes, cfg.Sources, cfg.LaunchPeer = []int64{1024}, []int{1}, lib
	r, err := Run(context.Background(), cfg)
	if !gputest.OnGPU() {
		require.ErrorContains(t, err, "from C")
		return
	}
	require.NoError(t, err)
	require.Len(t, r.Launches, 4)
	require.Equal(t, "c", r.Launches[1].From)
	require.NotZero(t, r.Launches[0].Difference)
	t.Logf("%+v", r.Launches)
}

func TestNoPeer(t *testing.T) {
	cfg := small(gputest.Driver(t))
	cfg.LaunchPeer = "/absent/liblaunch.so"
	_, err := Run(context.Background(), cfg)
	require.ErrorContains(t, err, "gcc -O2 -shared")
}
