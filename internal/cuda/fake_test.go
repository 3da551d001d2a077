//go:build linux && (amd64 || arm64) && !ringo_nogpu

package cuda

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/dl"
)

// build compiles a C file of testdata to a library with gcc.
func build(t testing.TB, source string, defines ...string) string {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		if strings.Contains(os.Getenv("REQUIRE"), "gcc") {
			t.Fatal("REQUIRE=gcc: ", err)
		}
		t.Skip("needs gcc: ", err)
	}
	lib := filepath.Join(t.TempDir(), strings.TrimSuffix(source, ".c")+".so")
	args := []string{"-shared", "-fPIC", "-O1", "-Wno-unused", "-pthread", "-o", lib, filepath.Join("testdata", source)}
	for _, d := range defines {
		args = append(args, "-D"+d)
	}
	out, err := exec.Command(gcc, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return lib
}

// A fake is the driver of testdata/fake.c and what it saw.
type fake struct {
	Driver
	lib dl.Library
}

func openFake(t testing.TB, defines ...string) fake {
	t.Helper()
	path := build(t, "fake.c", defines...)
	d, err := Open(path)
	require.NoError(t, err)
	lib, err := dl.Open(path)
	require.NoError(t, err)
	return fake{d, lib}
}

func saw[T any](t testing.TB, f fake, variable string) *T {
	t.Helper()
	p, err := f.lib.Sym(variable)
	require.NoError(t, err)
	return *(**T)(unsafe.Pointer(&p))
}

type fakeLaunch struct {
	Count                        uint64
	Grid, Block                  [3]uint64
	Shared, Stream, Function     uint64
	Cooperative, HasParams, Size uint64
	Params                       [4096]byte
}

type fakeCalls struct{ ProcCalls, CaptureVariant uint64 }

func TestOpenFailures(t *testing.T) {
	text := filepath.Join(t.TempDir(), "libcuda.so.1")
	require.NoError(t, os.WriteFile(text, []byte("no library"), 0o644))
	for _, c := range []struct {
		name   string
		path   string
		reason Reason
		is     error
		says   []string
	}{
		{"no file", "/nowhere/libcuda.so.1", NoLibrary, nil, []string{"/nowhere/libcuda.so.1", "No such file", "install the NVIDIA driver"}},
		{"no library", text, NoLibrary, nil, []string{text}},
		{"not a driver", build(t, "fake.c", "EMPTY"), NotDriver, ErrSharedObjectSymbolNotFound, []string{"cuInit"}},
		{"stub", build(t, "fake.c", "INIT=34"), Stub, ErrStubLibrary, []string{"CUDA_ERROR_STUB_LIBRARY", "stubs"}},
		{"no device", build(t, "fake.c", "INIT=100"), NoDevice, ErrNoDevice, []string{"CUDA_VISIBLE_DEVICES"}},
		{"mismatch", build(t, "fake.c", "INIT=803"), Mismatch, ErrSystemDriverMismatch, []string{"reboot"}},
		{"does not start", build(t, "fake.c", "INIT=999"), InitFails, ErrUnknown, []string{"cuInit: CUDA_ERROR_UNKNOWN"}},
		{"too old", build(t, "fake.c", "VERSION=11020"), TooOld, nil, []string{"11.2", "11.4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 2 { // it may be tried again
				d, err := Open(c.path)
				require.Nil(t, d)
				var u *Unavailable
				require.ErrorAs(t, err, &u)
				require.Equal(t, c.reason, u.Reason)
				require.Equal(t, c.path, u.Path)
				require.NotEmpty(t, u.Remedy)
				if c.is != nil {
					require.ErrorIs(t, err, c.is)
				}
				for _, s := range c.says {
					require.Contains(t, err.Error(), s)
				}
			}
		})
	}
}

func TestOpenAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "libcuda.so.1")
	_, err := Open(path)
	require.Error(t, err)
	lib, err := os.ReadFile(build(t, "fake.c"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, lib, 0o755))

	drivers := make([]Driver, 8)
	var group sync.WaitGroup
	for i := range drivers {
		group.Go(func() { drivers[i], _ = Open(path) })
	}
	group.Wait()
	require.NotNil(t, drivers[0])
	for _, d := range drivers {
		require.Same(t, drivers[0], d)
	}
	require.Equal(t, "cuda", drivers[0].Name())
	v, err := drivers[0].DriverGetVersion()
	require.NoError(t, err)
	require.Equal(t, 13000, v)
}

func TestSimpleCalls(t *testing.T) {
	d := openFake(t)
	n, err := d.DeviceGetCount()
	require.NoError(t, err)
	require.Equal(t, 2, n)
	name, err := d.DeviceGetName(1)
	require.NoError(t, err)
	require.Equal(t, "Fake One", name)
	least, greatest, err := d.CtxGetStreamPriorityRange()
	require.NoError(t, err)
	require.Equal(t, []int{0, -5}, []int{least, greatest})
	ms, err := d.EventElapsedTime(1, 2)
	require.NoError(t, err)
	require.Equal(t, float32(1.5), ms)

	p, err := d.MemAlloc(16)
	require.NoError(t, err)
	require.NoError(t, d.MemcpyHtoD(p, []byte("0123456789abcdef")))
	b := make([]byte, 6)
	require.NoError(t, d.MemcpyDtoH(b, p+10))
	require.Equal(t, "abcdef", string(b))
	require.NoError(t, d.MemFree(p))

	done, err := d.StreamQuery(1)
	require.NoError(t, err)
	require.True(t, done)
	done, err = d.StreamQuery(77)
	require.NoError(t, err, "not ready is no error")
	require.False(t, done)
}

func TestErrors(t *testing.T) {
	d := openFake(t)
	_, err := d.MemAlloc(1 << 40)
	require.ErrorIs(t, err, ErrOutOfMemory)
	require.EqualError(t, err, "cuMemAlloc: device 1: CUDA_ERROR_OUT_OF_MEMORY (1099511627776 bytes; 3.0 GiB of 8.0 GiB are free): "+remedies[ErrOutOfMemory])
	_, err = d.DeviceGet(2)
	require.ErrorIs(t, err, ErrInvalidDevice)
	require.Contains(t, err.Error(), "device 2")
	_, err = d.StreamQuery(78)
	require.ErrorIs(t, err, ErrIllegalAddress)
	require.Contains(t, err.Error(), "new one")
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, 1, e.Device)
	require.Equal(t, "cuStreamQuery", e.Call)
	require.Equal(t, "CUDA_ERROR_4711", Result(4711).Error())
}

// What is known of a wrong address is in the error.
func TestBadAddresses(t *testing.T) {
	d := openFake(t)
	fn, err := d.lib.Sym("fake_known")
	require.NoError(t, err)
	known := dl.Call(fn)
	err = d.MemsetD8(known+24, 1, 64)
	require.ErrorIs(t, err, ErrInvalidValue)
	require.Contains(t, err.Error(), fmt.Sprintf("(address %#x, 64 bytes): %#x is memory of device 1 with 40 bytes left", known+24, known+24))
	err = d.MemsetD8(0, 1, 64)
	require.Contains(t, err.Error(), "the address is null")
	err = d.MemcpyDtoD(known, 4096, 8)
	require.Contains(t, err.Error(), "0x1000 is no memory of the driver, so it was freed, or is the program's own, "+fmt.Sprintf("%#x is memory of device 1", known))
	err = d.MemcpyDtoD(known, 1, 8) // not about the addresses
	require.ErrorIs(t, err, ErrMisalignedAddress)
	require.NotContains(t, err.Error(), "no memory of the driver")
}

func TestMissingSymbols(t *testing.T) {
	for _, proc := range []int{0, 1, 2} {
		t.Run(fmt.Sprint("cuGetProcAddress ", proc), func(t *testing.T) {
			d := openFake(t, fmt.Sprintf("PROC=%d", proc), "WITHOUT", "VERSION=12040")
			_, err := d.EventQuery(1)
			want := ErrNotFound
			if proc == 0 {
				want = ErrSharedObjectSymbolNotFound
			}
			require.ErrorIs(t, err, want)
			require.EqualError(t, err, "cuEventQuery: "+want.Error()+" (the driver is of CUDA 12.4, the function is there since 2.0): install a newer NVIDIA driver")
			_, err = d.EventQuery(1)
			require.ErrorIs(t, err, want, "again")
			err = d.StreamWriteValue32(0, 0, 0, 0) // is nowhere in the fake
			require.ErrorIs(t, err, want)
			require.Contains(t, err.Error(), "11.7")
		})
	}
}

func TestResolution(t *testing.T) {
	for _, proc := range []int{0, 1, 2} {
		t.Run(fmt.Sprint("cuGetProcAddress ", proc), func(t *testing.T) {
			d := openFake(t, fmt.Sprintf("PROC=%d", proc))
			calls := saw[fakeCalls](t, d, "fake_calls")
			info, err := d.StreamGetCaptureInfo(101)
			require.NoError(t, err)
			require.EqualValues(t, 2, calls.CaptureVariant, "the variant that we were written for, though there is a newer one")
			require.Equal(t, CaptureInfo{Status: CaptureActive, ID: 101, Graph: 900, Dependencies: []GraphNode{31, 32, 33}}, info)
			asked := calls.ProcCalls
			require.Equal(t, proc > 0, asked > 0)
			_, err = d.StreamGetCaptureInfo(101)
			require.NoError(t, err)
			require.Equal(t, asked, calls.ProcCalls, "found once, kept")
			_, err = d.EventQuery(1) // not in cuGetProcAddress's table, but exported
			require.NoError(t, err)
		})
	}
}

func TestLaunch(t *testing.T) {
	d := openFake(t)
	got := saw[fakeLaunch](t, d, "fake_launch")
	args := struct {
		A uint8
		B uint64
		C float32
		D [5]uint16
		E uint8
	}{1, 2, 3, [5]uint16{4, 5, 6, 7, 8}, 9}
	want := slices.Clone(ArgsOf(&args))
	require.Len(t, want, 8+8+4+10+1, "no padding at the end")
	for _, cooperative := range []bool{false, true} {
		l := Launch{Grid: Dim3{7, 0, 2}, Block: Dim3{X: 256}, Shared: 4096, Stream: 55, Cooperative: cooperative}
		require.NoError(t, d.LaunchKernel(44, &l, want))
		require.Equal(t, [3]uint64{7, 1, 2}, got.Grid)
		require.Equal(t, [3]uint64{256, 1, 1}, got.Block)
		require.EqualValues(t, []uint64{4096, 55, 44}, []uint64{got.Shared, got.Stream, got.Function})
		require.EqualValues(t, len(want), got.Size)
		require.Equal(t, want, got.Params[:got.Size])
		require.Zero(t, got.HasParams)
		require.Equal(t, cooperative, got.Cooperative == 1)
	}
	require.NoError(t, d.LaunchKernel(44, &Launch{}, nil))
	require.Zero(t, got.Size)

	large := make([]byte, 4096)
	for i := range large {
		large[i] = byte(i * 3)
	}
	require.NoError(t, d.LaunchKernel(44, &Launch{}, large))
	require.Equal(t, large, got.Params[:])
	err := d.LaunchKernel(44, &Launch{}, make([]byte, 4097))
	require.ErrorIs(t, err, ErrInvalidValue)

	err = d.LaunchKernel(44, &Launch{Block: Dim3{X: 2048}, Shared: 5}, want[:12])
	require.ErrorIs(t, err, ErrInvalidValue)
	require.Contains(t, err.Error(), "grid 1×1×1, block 2048×1×1, 5 bytes of shared memory, 12 bytes of parameters")
	err = d.LaunchKernel(9, &Launch{}, want[:16])
	require.ErrorIs(t, err, ErrLaunchOutOfResources)
	require.Contains(t, err.Error(), "exactly the 12 bytes")
}

// A launch allocates nothing, and what it hands to C survives moving stacks.
func TestLaunchAllocatesNothing(t *testing.T) {
	d := openFake(t)
	l := Launch{Block: Dim3{X: 32}}
	args := struct{ a, b uint64 }{1, 2}
	n := testing.AllocsPerRun(1000, func() { d.LaunchKernel(44, &l, ArgsOf(&args)) })
	require.Zero(t, n)
	n = testing.AllocsPerRun(1000, func() { d.StreamQuery(77); d.CtxGetDevice() })
	require.Zero(t, n)
}

func TestLaunchesConcurrently(t *testing.T) {
	d := openFake(t)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 200 {
				p := make([]byte, 64)
				if err := d.LaunchKernel(Function(10+i), &Launch{}, p); err != nil {
					t.Error(err)
				}
				if v, w, err := d.CtxGetStreamPriorityRange(); v != 0 || w != -5 || err != nil {
					t.Error(v, w, err)
				}
				if j%50 == 0 {
					runtime.GC()
				}
			}
		})
	}
	group.Wait()
}

func TestIPCHandlesByValue(t *testing.T) {
	d := openFake(t)
	got := saw[struct {
		Flags  uint64
		Handle IPCHandle
	}](t, d, "fake_ipc")
	var h IPCHandle
	for i := range h {
		h[i] = byte(200 - i)
	}
	p, err := d.IpcOpenMemHandle(h)
	require.NoError(t, err)
	require.EqualValues(t, 0x1234, p)
	require.Equal(t, h, got.Handle)
	require.EqualValues(t, 1, got.Flags)

	h[63] = 3
	e, err := d.IpcOpenEventHandle(h)
	require.NoError(t, err)
	require.EqualValues(t, 0x5678, e)
	require.Equal(t, h, got.Handle)

	h, err = d.IpcGetMemHandle(10)
	require.NoError(t, err)
	require.Equal(t, []byte{10, 11, 73}, []byte{h[0], h[1], h[63]})
}

func TestCallbacks(t *testing.T) {
	d := openFake(t)
	registered := func() int {
		callbacks.Lock()
		defer callbacks.Unlock()
		return len(callbacks.f)
	}
	before := registered()

	done := make(chan int, 100)
	for i := range 100 {
		require.NoError(t, d.LaunchHostFunc(1, func() { done <- i }))
	}
	var got []int
	for range 100 {
		select {
		case i := <-done:
			got = append(got, i)
		case <-time.After(10 * time.Second):
			t.Fatal("a host function was not called")
		}
	}
	slices.Sort(got)
	require.Equal(t, []int{0, 1, 99}, []int{got[0], got[1], got[99]})
	require.Equal(t, before, registered(), "none is kept")

	require.ErrorIs(t, d.LaunchHostFunc(78, func() {}), ErrIllegalAddress)
	require.Equal(t, before, registered())

	// Captured: called in each launch, kept until the graph goes.
	calls := 0
	require.NoError(t, d.LaunchHostFunc(101, func() { calls++ }))
	for range 3 {
		require.NoError(t, d.GraphLaunch(1, 1))
	}
	require.Equal(t, 3, calls)
	require.NoError(t, d.GraphDestroy(900))
	require.Equal(t, before, registered())

	gone := 0
	o, err := d.UserObjectCreate(func() { gone++ }, 2)
	require.NoError(t, err)
	require.NoError(t, d.UserObjectRelease(o, 1))
	require.Zero(t, gone)
	require.NoError(t, d.UserObjectRelease(o, 1))
	require.Equal(t, 1, gone)
	require.Equal(t, before, registered())
}

func TestModuleLog(t *testing.T) {
	d := openFake(t)
	m, err := d.ModuleLoadData([]byte("good")) // it ends in a zero for C
	require.NoError(t, err)
	require.EqualValues(t, 5, m)
	_, err = d.ModuleLoadData([]byte("bad"))
	require.ErrorIs(t, err, ErrInvalidPTX)
	require.Contains(t, err.Error(), "(ptxas fatal: line 7 is nonsense)")
}
