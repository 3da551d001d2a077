package cuda

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/dl"
	"github.com/ringo-go/ringo/internal/test/must"
)

// The texts of a failed call, and of a driver that is not there.
func TestErrorTexts(t *testing.T) {
	for want, err := range map[string]error{
		"cuX: CUDA_ERROR_NOT_READY": &Error{Call: "cuX", Result: ErrNotReady,
			Device: -1},
		"cuX: device 0: CUDA_ERROR_NOT_READY (why): do that": &Error{Call: "cuX", Result: ErrNotReady,
			Detail: "why", Remedy: "do that"},
		"cuX: device 2: CUDA_ERROR_4711": &Error{Call: "cuX", Result: 4711, Device: 2},
		"cuX: CUDA_ERROR_NOT_INITIALIZED: open the driver with cuda.Open first": &Error{Call: "cuX",
			Result: ErrNotInitialized, Device: -1},
		"no CUDA: lib: the driver does not start (cuInit: CUDA_ERROR_UNKNOWN): look": &Unavailable{
			Path: "lib", Reason: InitFails, Remedy: "look", Err: &Error{Call: "cuInit", Result: ErrUnknown, Device: -1}},
		"no CUDA: lib: the driver is too old (really): look": &Unavailable{Path: "lib", Reason: TooOld, Remedy: "look",
			Err: errors.New("really")},
		"no CUDA: lib: the driver is too old: look": &Unavailable{Path: "lib", Reason: TooOld, Remedy: "look"},
	} {
		require.EqualError(t, err, want)
	}
	for n, want := range map[uintptr]string{
		0: "0 bytes", 1<<20 - 1: "1048575 bytes", 1 << 20: "1.0 MiB", 1<<30 - 1: "1024.0 MiB", 1 << 30: "1.0 GiB",
		5 << 29: "2.5 GiB",
	} {
		require.Equal(t, want, bytesString(n))
	}
	for v, want := range map[int]string{13000: "13.0", 12040: "12.4", 11080: "11.8", 10010: "10.1"} {
		require.Equal(t, want, versionString(v))
	}
	e := &Error{Call: "cuX", Result: ErrUnknown, Device: -1}
	require.NoError(t, detail(nil, "5 bytes"))
	require.EqualError(t, detail(detail(e, "%d bytes", 5), "at %d", 7),
		"cuX: CUDA_ERROR_UNKNOWN (at 7; 5 bytes)"+remedyText(ErrUnknown))
}

func remedyText(r Result) string {
	if results[r].remedy == "" {
		return ""
	}
	return ": " + results[r].remedy
}

// A driver's answers, for and against a feature, or none.
func TestAnswers(t *testing.T) {
	require.Equal(t, "memory pools: yes", Finding{Feature: "memory pools", Answer: Yes}.String())
	require.Equal(t, "memory pools: no: the driver is too old",
		Finding{Feature: "memory pools", Answer: No, Reason: "the driver is too old"}.String())
	require.Equal(t, "memory pools: unknown: it fails", Finding{Feature: "memory pools", Reason: "it fails"}.String())
	m := twoDevices(13000)
	m.fails["DeviceGet"] = ErrUnknown
	require.Equal(t, Unknown, Probe(m, MemoryFDs).Answer)

	for _, link := range []struct {
		link  Link
		whole bool
		peers bool
		fails string
	}{{NVLink, true, true, ""}, {UnknownLink, false, true, "DeviceGetP2PAttribute"}, {NoLink, false, false, ""},
		{NoLink, false, true, "DeviceCanAccessPeer"}} {
		m := twoDevices(13000)
		m.peers[0][1] = link.peers
		if link.fails != "" {
			m.fails[link.fails] = ErrUnknown
		}
		got, err := LinkBetween(m, 0, 1)
		require.Equal(t, link.link, got)
		require.Equal(t, link.fails == "DeviceCanAccessPeer", err != nil)
		require.Equal(t, link.whole, got.Whole())
	}
	same := must.Get(LinkBetween(m, 1, 1))
	require.True(t, same == SameGPU && same.Whole())
	require.False(t, PCIe.Whole())
}

// A device that lets in no program, or one, is a problem, and no other is.
func TestComputeModes(t *testing.T) {
	exclusive := "device 1: its compute mode lets in one process at a time: one rank to a device, and no other program " +
		"on it"
	for mode, want := range map[int]string{0: "",
		computeModeProhibited: "device 1: its compute mode forbids all programs: nvidia-smi -c DEFAULT allows them",
		computeModeExclusive:  exclusive} {
		m := twoDevices(13000)
		m.attributes[AttrComputeMode] = mode
		got := Describe(m).Problems
		if want == "" {
			require.Empty(t, got)
			continue
		}
		require.Len(t, got, 2)
		require.Equal(t, want, got[1])
	}
}

// A result of cuInit has its Reason, each Reason has a remedy, and a library that cannot be opened is Unavailable.
func TestReasons(t *testing.T) {
	for r, want := range map[Result]Reason{ErrStubLibrary: Stub, ErrNoDevice: NoDevice, ErrSystemDriverMismatch: Mismatch,
		ErrSharedObjectSymbolNotFound: NotDriver, ErrUnknown: InitFails} {
		require.Equal(t, want, reasonOf(&Error{Call: "cuInit", Result: r}))
	}
	for _, r := range []Reason{LeftOut, NoLibrary, NotDriver, Stub, NoDevice, TooOld, Mismatch, InitFails} {
		require.NotEmpty(t, remedyFor[r], r)
	}
	_, err := Open(filepath.Join(t.TempDir(), "libcuda.so.1"))
	var u *Unavailable
	require.ErrorAs(t, err, &u)
	require.Equal(t, errors.Is(err, dl.ErrUnsupported), u.Reason == LeftOut)
}

// The sizes of kernels' parameters: a handle may come back for another kernel, whose size is not known.
func TestParamSizes(t *testing.T) {
	var s paramSizes
	expect := func(f Function, n int, known bool) {
		t.Helper()
		got, had := s.of(f)
		require.Equal(t, known, had)
		require.Equal(t, n, got)
	}
	expect(1, 0, false)
	s.set(1, 0, false)
	require.Nil(t, s.sizes.Load(), "nothing was new")
	s.set(1, 12, true)
	s.set(2, 0, true)
	expect(1, 12, true)
	expect(2, 0, true)
	expect(3, 0, false)
	before := s.sizes.Load()
	s.set(1, 12, true)
	require.Same(t, before, s.sizes.Load(), "nothing was new")
	s.set(1, 16, true)
	expect(1, 16, true)
	s.set(1, 0, false)
	expect(1, 0, false)
	expect(2, 0, true)
	require.Equal(t, map[Function]int{1: 12, 2: 0}, *before, "who has the map keeps it")
}

// Dimensions that are left out are 1, and a failed launch says all of them.
func TestFailedLaunch(t *testing.T) {
	l := Launch{Grid: Dim3{2, 0, 3}, Block: Dim3{Y: 4}, Shared: 5}
	fails := func(r Result, remedy string) string {
		return launched(&l, make([]byte, 6), &Error{Call: "cuLaunchKernel", Result: r, Device: -1, Remedy: remedy}).Error()
	}
	launch := " (grid 2×1×3, block 1×4×1, 5 bytes of shared memory, 6 bytes of parameters)"
	require.Equal(t, "cuLaunchKernel: CUDA_ERROR_INVALID_VALUE"+launch+
		": the limits are 1024 threads a block, 65535 blocks in y and z, 4096 bytes of parameters, and 48 KiB of shared "+
		"memory unless FuncMaxDynamicShared is set", fails(ErrInvalidValue, ""))
	require.Equal(t, "cuLaunchKernel: CUDA_ERROR_INVALID_VALUE"+launch+": do that", fails(ErrInvalidValue, "do that"))
	require.Equal(t, "cuLaunchKernel: CUDA_ERROR_LAUNCH_FAILED"+launch+remedyText(ErrLaunchFailed),
		fails(ErrLaunchFailed, ""))
}

// An AllocationProp becomes C's structure, with its device, its handles and RDMA.
func TestAllocationProp(t *testing.T) {
	plain := memAllocationProp{kind: allocationPinned, location: memLocation{locationDevice, 3}}
	require.Equal(t, plain, *AllocationProp{Device: 3}.c())
	plain.handleTypes = handlePosixFD
	require.Equal(t, plain, *AllocationProp{Device: 3, Shareable: true}.c())
	plain.rdma = 1
	require.Equal(t, plain, *AllocationProp{Device: 3, Shareable: true, RDMA: true}.c())
}
