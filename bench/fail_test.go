package bench

import (
	"os"
	"regexp"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/gpu/emu"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// CPU is the model in /proc/cpuinfo, or the architecture where there is none.
func TestCPU(t *testing.T) {
	text, err := os.ReadFile("/proc/cpuinfo")
	want := runtime.GOARCH
	if found := regexp.MustCompile(`(?m)^model name\s*:\s*(.*\S)`).FindSubmatch(text); err == nil && found != nil {
		want = string(found[1])
	}
	require.Equal(t, want, CPU())
}

// Whichever call of the driver fails, the measurement ends with its error.
func TestAnyCallFails(t *testing.T) {
	tier.Long(t)
	cfg, err := parse("allreduce", "-device", "emu", "-g", "1", "-G", "2", "-beside", "-unchecked", "-b", "8", "-e", "8")
	require.NoError(t, err)
	for _, call := range tier.Some(4, []string{"cuMemAlloc", "cuMemFree", "cuStreamCreateWithPriority", "cuStreamDestroy",
		"cuEventCreate", "cuEventDestroy", "cuEventRecord", "cuEventElapsedTime",
		"cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuGraphExecDestroy",
		"cuLaunchKernel", "cuMemsetD8Async", "cuModuleUnload"}) {
		n := 0
		for failed := true; failed && n < 4; {
			n++
			m, err := emu.Open(emu.Config{GPUs: make([]emu.GPU, 1), Unchecked: true})
			require.NoError(t, err)
			dev := m.Devices()[0]
			comms, err := ringo.OpenLocal(1, ringo.Config{Devices: []*gpu.Device{dev}})
			require.NoError(t, err)
			m.Inject(emu.Fault{Call: call, Nth: n, Result: emu.Unknown})
			err = newWorker(cfg, comms[0]).run(cfg.plan(1), dev)
			if failed = err != nil; failed {
				require.ErrorIs(t, err, emu.Unknown, "%s, call %d", call, n)
			}
			comms[0].Close()
			m.Close()
		}
		require.Greater(t, n, 1, "%s is never called, or its error is not told", call)
	}
}
