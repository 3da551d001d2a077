//go:build linux && (amd64 || arm64) && !ringo_nogpu

package nvml

import (
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/need"
)

// fake compiles testdata/nvml.c.
func fake(t *testing.T, defines ...string) string {
	t.Helper()
	gcc := need.Tool(t, "gcc")
	file := filepath.Join(t.TempDir(), "libnvidia-ml.so")
	args := []string{"-shared", "-fPIC", "-Wall", "-Werror", "-o", file, "testdata/nvml.c"}
	for _, d := range defines {
		args = append(args, "-D"+d)
	}
	out, err := exec.Command(gcc, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return file
}

func TestState(t *testing.T) {
	l, err := Open(fake(t))
	require.NoError(t, err)
	driver, err := l.Driver()
	require.NoError(t, err)
	require.Equal(t, "570.124.06", driver)
	n, err := l.Count()
	require.NoError(t, err)
	require.Equal(t, 2, n)

	d, err := l.At("0001:3d:00.0")
	require.NoError(t, err)
	same, err := l.Index(1)
	require.NoError(t, err)
	require.Equal(t, same, d)
	s, err := l.State(d)
	require.NoError(t, err)
	up := func(link int64) NVLink {
		return NVLink{Active: true, Version: 4, Remote: map[int64]string{0: "0000:a0:00.0", 2: "0000:a2:00.0"}[link],
			Kind:   "switch",
			Errors: Errors{100 * link, 100*link + 1, 100*link + 2, -1}}
	}
	require.Equal(t, State{
		Name: "NVIDIA H200", UUID: "GPU-1", PCI: "0001:3d:00.0", Persistence: On, MIG: Off, ECC: On, ECCPending: Off,
		Now: Counts{1 << 40, 1<<40 + 10}, Life: Counts{1<<40 + 1, 1<<40 + 11},
		Rows: Rows{1, 2, On, Off}, Pages: Pages{0, 3, Unknown}, Slowed: Idle, Clocks: Clocks{1001, 2001, 1002, 2002},
		Degrees: 41, Limit: 87,
		PCIe: PCIe{1, 5, 8, 16, 7}, Links: []NVLink{up(0), {Version: -1, Errors: Errors{-1, -1, -1, -1}}, up(2)},
		Unanswered: []string{
			"nvmlDeviceGetRetiredPagesPendingStatus: the GPU does not say",
			"nvmlDeviceGetNvLinkErrorCounter: the GPU does not say", "nvmlDeviceGetNvLinkErrorCounter: the GPU does not say",
		},
	}, s)

	_, err = l.At("0000:ff:00.0")
	require.ErrorIs(t, err, ErrNotFound)
}

// TestOldLibrary: fields whose function an old library lacks are Unknown, and the others are set.
func TestOldLibrary(t *testing.T) {
	l, err := Open(fake(t, "OLD"))
	require.NoError(t, err)
	d, err := l.Index(0)
	require.NoError(t, err)
	s, err := l.State(d)
	require.NoError(t, err)
	require.Equal(t, HWSlowdown|HWThermal, s.Slowed)
	require.Equal(t, "hardware slowdown, much too hot", s.Slowed.String())
	require.Equal(t, Unknown, s.MIG)
	require.Equal(t, Rows{-1, -1, Unknown, Unknown}, s.Rows)
	require.Empty(t, s.Links)
	require.Equal(t, 16, s.PCIe.Width)
	for _, name := range []string{"nvmlDeviceGetMigMode", "nvmlDeviceGetRemappedRows", "nvmlDeviceGetNvLinkState"} {
		require.Contains(t, s.Unanswered, name+": this library is too old for it")
	}
}

func TestLost(t *testing.T) {
	l, err := Open(fake(t, "GONE"))
	require.NoError(t, err)
	d, err := l.Index(1)
	require.NoError(t, err)
	_, err = l.State(d)
	require.ErrorIs(t, err, ErrGPUIsLost)
}

func TestOpenFails(t *testing.T) {
	_, err := Open("libnvidia-ml-that-is-not-there.so")
	require.ErrorContains(t, err, "it comes with the NVIDIA driver")
	_, err = Open(fake(t, "BROKEN"))
	require.ErrorIs(t, err, ErrVersionMismatch)
}

// The layout of nvml.h: the fake has the same struct in C, with an assertion of its size.
func TestLayout(t *testing.T) {
	p := reflect.TypeOf(pciInfo{})
	require.EqualValues(t, 68, p.Size())
	for name, at := range map[string]uintptr{"domain": 16, "bus": 20, "device": 24} {
		f, ok := p.FieldByName(name)
		require.True(t, ok)
		require.Equal(t, at, f.Offset, name)
	}
}
