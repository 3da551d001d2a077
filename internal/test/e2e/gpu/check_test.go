package gpu

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/mem"
)

// wellOnDevice makes an all-reduce of all ranks, on their legacy streams.
func wellOnDevice(t *testing.T, comms []*ringo.Comm) {
	t.Helper()
	var data []mem.Region
	for _, c := range comms {
		data = append(data, commtest.Alloc(t, c.Device(), commtest.Floats([]float32{1, 2, 3})))
	}
	for r, c := range comms {
		require.NoError(t, c.Err(), "rank %d", r)
		require.NoError(t, c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: data[r], Out: data[r], Count: 3,
			Type: ringo.Float32}))
	}
	n := float32(len(comms))
	for r, c := range comms {
		require.NoError(t, c.Synchronize(0))
		got := make([]byte, 12)
		require.NoError(t, c.Device().Read(got, data[r]))
		require.Equal(t, commtest.Floats([]float32{n, 2 * n, 3 * n}), got)
	}
}

// A call with wrong memory or a wrong stream fails before any other rank hears
// of it, with rank, device and remedy, and the communicator stays usable.
func TestDeviceBadCalls(t *testing.T) {
	list := gputest.GPUs(t, 2, gputest.Unchecked(2))
	comms := commtest.OnDevices(t, list, ringo.Config{})
	c, d := comms[0], list[0]
	good, foreign := commtest.Alloc(t, d, make([]byte, 4096)), commtest.Alloc(t, list[1], make([]byte, 4096))
	stream, alien := commtest.Stream(t, d), commtest.Stream(t, list[1])
	big, err := d.Alloc(64 << 20)
	require.NoError(t, err)
	require.NoError(t, d.Free(big))
	pageable := make([]byte, 4096)
	for _, test := range []struct {
		name   string
		region ringo.Region
		stream gpu.Stream
		want   []string
	}{
		{"null", mem.Device(0, 0, 4096), 0, []string{"In is nil, needs 16 elements"}},
		{"host pointer", mem.Device(0, uintptr(unsafe.Pointer(&pageable[0])), 4096), 0,
			[]string{"In: 64 bytes at 0x", "device 0: no memory of a GPU", "give memory of gpu.Device.Alloc"}},
		{"host memory", mem.Host(pageable), 0, []string{"one of In and Out is host memory"}},
		{"another device's region", foreign, 0, []string{"memory of device 1, but the rank's GPU is device 0"}},
		{"another device's pointer", mem.Device(0, foreign.Ptr(), 4096), 0,
			[]string{"device 0: memory of device 1: give memory of device 0"}},
		{"freed", mem.Device(0, big.Ptr()+4096, 4096), 0, []string{"device 0: no memory of a GPU: freed"}},
		{"misaligned", good.Slice(1, 4000), 0, []string{"on device 0 is no multiple of the element's 4 bytes"}},
		{"short", good.Slice(0, 60), 0, []string{"In has 15 elements, needs 16"}},
		{"longer than its allocation", mem.Device(0, good.Ptr()+4096-32, 64), 0, []string{"device 0: "}},
		{"stream of another device", good, alien,
			[]string{"stream 0x", "not of device 0's primary context: make it with device 0 current"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			out := good.Slice(2048, 2048)
			for _, call := range []*ringo.Call{
				{Kind: ringo.KindAllReduce, In: test.region, Out: out, Count: 16, Type: ringo.Float32, Stream: test.stream},
				{Kind: ringo.KindSend, In: test.region, Out: mem.Device(0, 0, 0), Count: 16, Type: ringo.Float32, Peer: 1,
					Stream: test.stream},
			} {
				if call.Kind == ringo.KindSend && test.name == "host memory" {
					continue // is a call on host memory
				}
				err := c.Do(call)
				var e *ringo.Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, 0, e.Rank)
				require.ErrorIs(t, err, ringo.ErrInvalid)
				for _, want := range test.want {
					require.ErrorContains(t, err, want)
				}
				g := ringo.NewGroup()
				g.Add(c, call)
				require.ErrorIs(t, g.Run(), ringo.ErrInvalid)
			}
			wellOnDevice(t, comms)
		})
	}

	t.Run("broken capture", func(t *testing.T) {
		require.NoError(t, d.With(func() error {
			driver := d.Driver()
			require.NoError(t, driver.StreamBeginCapture(stream, cuda.CaptureGlobal))
			_, err := driver.MemAlloc(64)
			require.ErrorIs(t, err, cuda.ErrStreamCaptureUnsupported)
			err = c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: good, Out: good, Count: 16, Type: ringo.Float32,
				Stream: stream})
			require.ErrorIs(t, err, ringo.ErrInvalid)
			require.ErrorContains(t, err, "on device 0 is broken: end it, and look at the first error since it began")
			_, err = driver.StreamEndCapture(stream)
			require.ErrorIs(t, err, cuda.ErrStreamCaptureInvalidated)
			return nil
		}))
		wellOnDevice(t, comms)
	})

	t.Run("legacy stream beside a capture", func(t *testing.T) {
		require.NoError(t, d.With(func() error {
			driver := d.Driver()
			blocking, err := driver.StreamCreate(0, 0)
			require.NoError(t, err)
			require.NoError(t, driver.StreamBeginCapture(blocking, cuda.CaptureRelaxed))
			err = c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: good, Out: good, Count: 16, Type: ringo.Float32})
			require.ErrorIs(t, err, ringo.ErrInvalid)
			require.ErrorContains(t, err, "the legacy stream takes no part in captures: use another stream")
			g, err := driver.StreamEndCapture(blocking)
			if err == nil {
				err = driver.GraphDestroy(g)
			}
			require.True(t, err == nil || errors.Is(err, cuda.ErrStreamCaptureInvalidated), err)
			return driver.StreamDestroy(blocking)
		}))
		wellOnDevice(t, comms)
	})

	alone := commtest.Local(t, 1, ringo.Config{})[0]
	err = alone.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: good, Out: good, Count: 4, Type: ringo.Float32})
	require.ErrorIs(t, err, ringo.ErrUnsupported)
	require.ErrorContains(t, err, "no rank has a GPU")
}

// Memory that was freed after calls on it is found if gpu.Device.Free has freed it, and
// with CheckPointers whoever has.
func TestDeviceFreed(t *testing.T) {
	for name, cfg := range map[string]ringo.Config{"by the device": {}, "by others": {CheckPointers: true}} {
		t.Run(name, func(t *testing.T) {
			list := gputest.GPUs(t, 1)
			c := commtest.OnDevices(t, list, cfg)[0]
			d := list[0]
			x, err := d.Alloc(64 << 20)
			require.NoError(t, err)
			call := &ringo.Call{Kind: ringo.KindBroadcast, In: x, Out: x, Count: 16, Type: ringo.Float32}
			require.NoError(t, d.Write(x, make([]byte, 64)))
			for range 2 {
				require.NoError(t, c.Do(call))
			}
			require.NoError(t, c.Synchronize(0))
			if name == "by others" {
				require.NoError(t, d.With(func() error { return d.Driver().MemFree(x.Ptr()) }))
			} else {
				require.NoError(t, d.Free(x))
			}
			err = c.Do(call)
			require.ErrorIs(t, err, ringo.ErrInvalid)
			require.ErrorContains(t, err, "device 0: no memory of a GPU: freed")
			require.NoError(t, c.Err())
		})
	}
}

// A driver's refusal while a communicator is opened ends Open on all ranks, with
// device and remedy, and leaves nothing behind.
func TestDeviceOpenRefused(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("needs a driver that refuses")
	}
	type refusal struct {
		name   string
		fault  cudaemu.Injection
		remedy string
	}
	for _, test := range tier.Some(3, []refusal{
		{"exclusive mode", cudaemu.Injection{Call: "cuDevicePrimaryCtxRetain", Nth: 2, Result: cuda.ErrDeviceUnavailable},
			"another process has the GPU for itself: nvidia-smi -q -d COMPUTE shows the compute mode"},
		{"out of memory", cudaemu.Injection{Call: "cuMemAlloc", Device: 2, Chance: 1, Result: cuda.ErrOutOfMemory},
			"free device memory, or look with nvidia-smi who else uses the GPU"},
		{"no pinned memory", cudaemu.Injection{Call: "cuMemHostAlloc", Device: 2, Chance: 1, Result: cuda.ErrOutOfMemory},
			"memory"},
		{"no streams", cudaemu.Injection{Call: "cuStreamCreateWithPriority", Device: 2, Chance: 1,
			Result: cuda.ErrOutOfMemory}, "memory"},
	}) {
		t.Run(test.name, func(t *testing.T) {
			list := gputest.GPUs(t, 3, gputest.Emu(cudaemu.Config{Devices: 3, Plain: !tier.Full(),
				Faults: []cudaemu.Injection{test.fault}}))
			_, err := ringo.OpenLocal(3, ringo.Config{Devices: list, JoinTimeout: 20 * time.Second})
			var e *ringo.Error
			require.ErrorAs(t, err, &e)
			require.ErrorIs(t, err, test.fault.Result)
			require.ErrorContains(t, err, "device ")
			require.ErrorContains(t, err, test.remedy)
			require.GreaterOrEqual(t, strings.Count(err.Error(), "Open: rank "), 3, "all ranks say something: %v", err)
		})
	}
}

// A driver's refusal during a call is the call's error, with device and remedy, and
// ends the communicator on all ranks.
func TestDeviceCallRefused(t *testing.T) {
	tier.Long(t)
	if gputest.OnGPU() {
		t.Skip("needs a driver that refuses")
	}
	type refusal struct {
		name   string
		kind   ringo.Kind
		fault  cudaemu.Injection
		remedy string
	}
	for _, test := range tier.Some(3, []refusal{
		{"JIT disabled", ringo.KindAllReduce, cudaemu.Injection{Call: "cuModuleLoadData",
			Result: cuda.ErrJITCompilationDisabled}, "CUDA_DISABLE_PTX_JIT"},
		{"no JIT", ringo.KindAllReduce, cudaemu.Injection{Call: "cuModuleLoadData", Result: cuda.ErrJITCompilerNotFound},
			"libnvidia-ptxjitcompiler.so.1"},
		{"driver too old", ringo.KindAllReduce, cudaemu.Injection{Call: "cuModuleLoadData",
			Result: cuda.ErrUnsupportedPTXVersion}, "install a newer driver"},
		{"out of memory", ringo.KindAlltoAllv, cudaemu.Injection{Call: "cuMemCreate", Result: cuda.ErrOutOfMemory},
			"free device memory"},
		{"launch", ringo.KindAllReduce, cudaemu.Injection{Call: "cuLaunchKernel", Result: cuda.ErrLaunchOutOfResources},
			"launch fewer threads"},
		{"context lost", ringo.KindAllReduce, cudaemu.Injection{Call: "cuLaunchKernel", Result: cuda.ErrIllegalAddress},
			"end the process and start a new one"},
	}) {
		t.Run(test.name, func(t *testing.T) {
			list := gputest.GPUs(t, 2, gputest.Unchecked(2))
			comms := commtest.OnDevices(t, list, ringo.Config{Timeout: 20 * time.Second})
			var data []mem.Region
			for _, d := range list {
				data = append(data, commtest.Alloc(t, d, make([]byte, 4096)))
			}
			test.fault.Device, test.fault.Chance = 1, 1
			list[0].Driver().(*cudaemu.Machine).Inject(test.fault)
			counts := []int{8, 8} // in place In is copied first
			err := comms[0].Do(&ringo.Call{Kind: test.kind, In: data[0], Out: data[0], Count: 16, Type: ringo.Float32,
				InCounts: counts, OutCounts: counts})
			var e *ringo.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, 0, e.Rank)
			require.ErrorIs(t, err, test.fault.Result)
			require.ErrorContains(t, err, "device 0: "+test.fault.Result.Error())
			require.ErrorContains(t, err, test.remedy)
			require.Error(t, comms[0].Err())
			require.Eventually(t, func() bool { return comms[1].Failure() != nil }, tier.Patience, time.Millisecond)
			require.ErrorContains(t, comms[1].Failure(), test.fault.Result.Error())
		})
	}
}
