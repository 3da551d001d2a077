package bench_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bench/device"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
)

// smallDevice is a Config that takes no time on the emulator.
func smallDevice(d cuda.Driver) device.Config {
	return device.Config{
		Driver: d, Types: tier.Some(2, []kernels.DataType{kernels.Float32, kernels.BFloat16, kernels.Uint8}),
		Ops: []kernels.RedOp{kernels.Sum, kernels.Avg, kernels.BitAnd}, Sources: []int{1, 2, 8}, Sizes: []int64{1 << 10, 48},
		Repetitions: 3, Table: io.Discard,
	}
}

func TestDevice(t *testing.T) {
	need.Tool(t, "sh")
	cfg := smallDevice(gputest.Driver(t))
	var table strings.Builder
	cfg.Table = &table
	cfg.FirstUse = []string{"sh", "-c",
		`test -d "$CUDA_CACHE_PATH" && echo "{\"type\": \"$1\", \"op\": \"$2\", \"total_ms\": 7}"`, "sh"}
	r, err := device.Run(context.Background(), cfg)
	require.NoError(t, err)

	combines := 2*len(cfg.Types) + 1 // floats have no bitand
	require.Len(t, r.Rows, 2*(1+3*combines))
	for _, row := range r.Rows {
		require.Zero(t, row.Wrong, row)
		require.Positive(t, row.Checked, row)
		require.Equal(t, row.Size*int64(row.Sources+1), row.Moved)
	}
	require.Equal(t, device.Row{What: "combine", Type: "uint8", Op: "bitand", Sources: 8, Size: 48, Moved: 432,
		Checked: r.Rows[len(r.Rows)-1].Checked},
		func(r device.Row) device.Row {
			r.Time, r.Bandwidth, r.OfCopy = device.Time{}, 0, 0
			return r
		}(r.Rows[len(r.Rows)-1]))
	require.Len(t, r.Launches, 2)
	require.Len(t, r.First, 2*combines)
	require.Equal(t, device.FirstUse{Type: "float32", Op: "sum", Cache: "cold", Total: 7}, r.First[0])
	require.Positive(t, r.PTX.Modules)
	require.Less(t, r.PTX.Embedded, 6<<20)
	require.Contains(t, table.String(), "bitand")
	require.Equal(t, gputest.OnGPU(), !strings.Contains(table.String(), "times mean nothing"))

	b, err := json.Marshal(r)
	require.NoError(t, err)
	var again device.Report
	require.NoError(t, json.Unmarshal(b, &again))
	require.Equal(t, *r, again)
}

// deaf is a driver that forgets to launch kernels.
type deaf struct{ cuda.Driver }

func (deaf) LaunchKernel(cuda.Function, *cuda.Launch, []byte) error { return nil }

func TestWrongResultsOfADevice(t *testing.T) {
	cfg := smallDevice(deaf{gputest.Driver(t)})
	cfg.Types, cfg.Ops, cfg.Sources = cfg.Types[:1], cfg.Ops[:1], []int{2}
	r, err := device.Run(context.Background(), cfg)
	var wrong *device.WrongError
	require.ErrorAs(t, err, &wrong)
	require.NotNil(t, r)
	require.Zero(t, r.Rows[0].Wrong) // the copy is not by a kernel
	require.Greater(t, r.Rows[1].Wrong, r.Rows[1].Checked*9/10)
}

func TestFirstUseOfADevice(t *testing.T) {
	u, err := device.MeasureFirstUse(gputest.Driver(t), 0, kernels.BFloat16, kernels.Max)
	require.NoError(t, err)
	require.Equal(t, "bfloat16", u.Type)
	require.Equal(t, "max", u.Op)
	require.Positive(t, u.Total)
	require.InDelta(t, u.Total, u.Load+u.Run, 1e-9)
}

// TestLaunchFromC needs the driver; without one the C side says so.
func TestLaunchFromC(t *testing.T) {
	lib, err := filepath.Abs("../liblaunch.so") // beside the test binaries on a machine without gcc
	require.NoError(t, err)
	if _, err := os.Stat(lib); err != nil {
		gcc := need.Tool(t, "gcc")
		lib = filepath.Join(t.TempDir(), "liblaunch.so")
		out, err := exec.Command(gcc, "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", lib, "device/testdata/launch.c",
			"-ldl").CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	cfg := smallDevice(gputest.Driver(t))
	cfg.Sizes, cfg.Sources, cfg.LaunchPeer = []int64{1024}, []int{1}, lib
	r, err := device.Run(context.Background(), cfg)
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

func TestNoLaunchPeer(t *testing.T) {
	cfg := smallDevice(gputest.Driver(t))
	cfg.Types, cfg.Ops, cfg.Sources, cfg.Sizes = cfg.Types[:1], cfg.Ops[:1], []int{2}, []int64{48}
	cfg.LaunchPeer = filepath.Join(t.TempDir(), "liblaunch.so")
	_, err := device.Run(context.Background(), cfg)
	require.ErrorContains(t, err, "gcc -O2 -shared")
}

// Whichever call of the driver fails, the error names it, and nothing is left.
func TestDeviceCallFails(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("a real driver does not fail when it is told to")
	}
	for _, call := range []string{"cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuDeviceGetAttribute", "cuDeviceGetName",
		"cuDeviceTotalMem", "cuDeviceGetPCIBusId", "cuMemAlloc", "cuStreamCreateWithPriority",
		"cuMemcpyHtoD", "cuMemsetD8", "cuMemcpyAsync", "cuMemcpyDtoH", "cuModuleLoadDataEx", "cuModuleGetFunction",
		"cuStreamSynchronize", "cuCtxSynchronize", "cuEventCreate"} {
		m := gputest.Driver(t).(*cudaemu.Machine)
		for nth := 1; nth < 9; nth++ {
			m.Inject(cudaemu.Injection{Call: call, Nth: nth, Result: cuda.ErrUnknown})
			cfg := smallDevice(m)
			cfg.Types, cfg.Ops, cfg.Sources, cfg.Sizes = cfg.Types[:1], cfg.Ops[:1], []int{2}, []int64{48}
			r, err := device.Run(context.Background(), cfg)
			if err == nil {
				break
			}
			require.ErrorIs(t, err, cuda.ErrUnknown, call)
			require.ErrorContains(t, err, call)
			require.Nil(t, r)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := device.Run(ctx, smallDevice(gputest.Driver(t)))
	require.ErrorIs(t, err, context.Canceled)
}
