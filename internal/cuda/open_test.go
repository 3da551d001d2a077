//go:build linux && (amd64 || arm64) && !ringo_nogpu

package cuda

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/must"
)

// Each way in which Open fails has its Reason and its remedy.
func TestOpenFailures(t *testing.T) {
	text := filepath.Join(t.TempDir(), "libcuda.so.1")
	none := filepath.Join(t.TempDir(), "none", "libcuda.so.1")
	require.NoError(t, os.WriteFile(text, []byte("no library"), 0o644))
	for _, c := range []struct {
		name   string
		path   string
		reason Reason
		is     error
		says   []string
	}{
		{"no file", none, NoLibrary, nil,
			[]string{none, "No such file", "install the NVIDIA driver"}},
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
	require.Error(t, must.Err(Open(path)))
	lib := must.Get(os.ReadFile(build(t, "fake.c")))
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
	v := must.Get(drivers[0].DriverGetVersion())
	require.Equal(t, 13000, v)
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
			require.EqualError(t, err,
				"cuEventQuery: "+want.Error()+" (the driver is of CUDA 12.4, the function is there since 2.0): install a newer "+
					"NVIDIA driver")
			require.ErrorIs(t, must.Err(d.EventQuery(1)), want, "again")
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
			info := must.Get(d.StreamGetCaptureInfo(101))
			require.EqualValues(t, 2, calls.CaptureVariant, "the variant that we were written for, though there is a newer one")
			require.Equal(t, CaptureInfo{Status: CaptureActive, ID: 101, Graph: 900, Dependencies: []GraphNode{31, 32, 33}},
				info)
			asked := calls.ProcCalls
			require.Equal(t, proc > 0, asked > 0)
			must.Get(d.StreamGetCaptureInfo(101))
			require.Equal(t, asked, calls.ProcCalls, "found once, kept")
			_, err := d.EventQuery(1) // not in cuGetProcAddress's table, but exported
			require.NoError(t, err)
		})
	}
}
