//go:build linux && (amd64 || arm64) && !ringo_nogpu

package check

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/check/nvml"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/need"
)

// fakeLibrary compiles testdata/nvml.c.
func fakeLibrary(t *testing.T, defines ...string) string {
	t.Helper()
	gcc := need.Tool(t, "gcc")
	file := filepath.Join(t.TempDir(), "libnvidia-ml.so")
	args := []string{"-shared", "-fPIC", "-Wall", "-Werror", "-o", file, "nvml/testdata/nvml.c"}
	for _, d := range defines {
		args = append(args, "-D"+d)
	}
	out, err := exec.Command(gcc, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return file
}

func TestNVMLState(t *testing.T) {
	l, err := nvml.Open(fakeLibrary(t))
	require.NoError(t, err)
	driver, err := l.Driver()
	require.NoError(t, err)
	require.Equal(t, "570.124.06", driver)
	n, err := l.Count()
	require.NoError(t, err)
	require.Equal(t, 2, n)

	d, err := l.At("0001:3d:00.0")
	require.NoError(t, err)
	s, err := l.State(d)
	require.NoError(t, err)
	require.Equal(t, nvml.State{
		Persistence: nvml.On, MIG: nvml.Off, ECC: nvml.On, ECCPending: nvml.Off,
		Corrected: 1 << 40, Uncorrected: 1<<40 + 10, UncorrectedEver: 1<<40 + 11,
		Rows: nvml.Repairs{Corrected: 1, Uncorrected: 2, Pending: nvml.On}, NoSpare: nvml.Off,
		Pages: nvml.Repairs{Uncorrected: 3, Pending: nvml.Unknown}, Slowed: 1, SM: 1001, SMMax: 2001, Degrees: 41, Limit: 87,
		PCIe: nvml.PCIe{Generation: 1, GenerationMax: 5, Width: 8, WidthMax: 16, Replays: 7},
		Links: []nvml.NVLink{{Active: true, Switch: true, Recovery: 1, Errors: 2}, {},
			{Active: true, Switch: true, Recovery: 201, Errors: 402}},
	}, s)

	_, err = l.At("0000:ff:00.0")
	require.ErrorIs(t, err, nvml.ErrNotFound)
}

// TestOldNVML: fields whose function an old library lacks are Unknown, and the others are set.
func TestOldNVML(t *testing.T) {
	l, err := nvml.Open(fakeLibrary(t, "OLD"))
	require.NoError(t, err)
	d, err := l.At("0000:1b:00.0")
	require.NoError(t, err)
	s, err := l.State(d)
	require.NoError(t, err)
	require.Equal(t, nvml.HWSlowdown|nvml.HWThermal, s.Slowed)
	require.Equal(t, "hardware slowdown, much too hot", s.Slowed.String())
	require.Equal(t, nvml.Unknown, s.MIG)
	require.Equal(t, nvml.Repairs{Corrected: -1, Uncorrected: -1}, s.Rows)
	require.Equal(t, nvml.Unknown, s.NoSpare)
	require.Empty(t, s.Links)
	require.Equal(t, 16, s.PCIe.Width)
}

func TestNVMLLosesAGPU(t *testing.T) {
	l, err := nvml.Open(fakeLibrary(t, "GONE"))
	require.NoError(t, err)
	d, err := l.At("0001:3d:00.0")
	require.NoError(t, err)
	_, err = l.State(d)
	require.ErrorIs(t, err, nvml.ErrGPUIsLost)
}

func TestNVMLFails(t *testing.T) {
	_, err := nvml.Open("libnvidia-ml-that-is-not-there.so")
	require.ErrorContains(t, err, "it comes with the NVIDIA driver")
	_, err = nvml.Open(fakeLibrary(t, "BROKEN"))
	require.ErrorIs(t, err, nvml.ErrVersionMismatch)
}

// The library itself, a small one in C, is asked about the GPUs at the driver's addresses.
func TestGPUStateFromALibrary(t *testing.T) {
	library, err := nvml.Open(fakeLibrary(t, "ONEDOMAIN"))
	require.NoError(t, err)
	r := newRig(2, 1, "a")
	r.emu["a"].Shapes = []cudaemu.Device{{Bus: 0x1b}, {Bus: 0x3d}}
	stages, source := gpuStages(), r.source()
	source.manager = func(string) (manager, error) { return library, nil }
	report, errs := runAll(t, local("a"), config{Stages: stages[:2], gpus: source})
	require.NoError(t, errs[0])
	require.Equal(t, []string{
		"ecc-uncorrected host a, GPU 0", "ecc-uncorrected host a, GPU 1", "nvlink-recovers host a, GPU 0",
		"nvlink-recovers host a, GPU 1",
		"pcie-width host a, GPU 1", "row-pending host a, GPU 0", "row-pending host a, GPU 1",
	}, codes(report))
	require.Equal(t, "570.124.06", report.Of("GPUs", "driver")[0].Text)
}
