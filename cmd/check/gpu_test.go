package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/check/nvml"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// A rig is the emulated GPUs of a job's hosts, with a fake of the driver's management library.
type rig struct {
	emu      map[string]*cudaemu.Config
	nvml     map[string]*fakeNVML
	none     map[string]error // of opening the driver
	patience time.Duration
	lose     bool // lose GPU 1 of host b before the first stage is over

	mu       sync.Mutex
	machines []*cudaemu.Machine
}

// newRig makes hosts with that many GPUs each, all well.
func newRig(gpus int, seed uint64, hosts ...string) *rig {
	r := &rig{emu: map[string]*cudaemu.Config{}, nvml: map[string]*fakeNVML{}, none: map[string]error{},
		patience: 30 * time.Second}
	for i, h := range hosts {
		r.emu[h] = &cudaemu.Config{Devices: gpus, Plain: true, Speed: emulatedSpeed, Seed: seed + uint64(i), Host: h}
		r.nvml[h] = newNVML(gpus)
	}
	return r
}

func (r *rig) source() *gpuSource {
	return &gpuSource{
		driver: func(host string) (cuda.Driver, error) {
			if err := r.none[host]; err != nil {
				return nil, err
			}
			m, err := cudaemu.New(*r.emu[host])
			r.mu.Lock()
			defer r.mu.Unlock()
			r.machines = append(r.machines, m)
			if err == nil && r.lose && host == "b" {
				return losing{m}, nil
			}
			return m, err
		},
		manager: func(host string) (manager, error) {
			if r.nvml[host] == nil {
				return nil, errors.New("none here")
			}
			return r.nvml[host], nil
		},
		patience: r.patience,
	}
}

// losing is a driver whose GPU 1 falls off the bus when its kernels are being loaded.
type losing struct{ *cudaemu.Machine }

func (l losing) ModuleLoadData(image []byte) (cuda.Module, error) {
	if dev, err := l.CtxGetDevice(); err == nil && dev == 1 {
		l.LoseDevice(1, cuda.ErrECCUncorrectable)
	}
	return l.Machine.ModuleLoadData(image)
}

// check carries out the GPU stages up to one, with a rank on each host.
func (r *rig) check(t *testing.T, last string, cfg config, hosts ...string) *report {
	t.Helper()
	stages := gpuStages()
	i := slices.IndexFunc(stages, func(s stage) bool { return s.Name == last })
	cfg.Stages, cfg.gpus = slices.Clone(stages[:i+1]), r.source()
	for i := range cfg.Stages { // the machine may be loaded
		cfg.Stages[i].Quick = 2 * time.Minute
	}
	report, errs := runAll(t, local(hosts...), cfg)
	for _, err := range errs {
		require.NoError(t, err)
	}
	for _, m := range r.machines {
		for _, fault := range m.Reports() {
			t.Error(fault)
		}
	}
	return report
}

// fakeNVML is a manager of GPUs at the emulator's addresses.
type fakeNVML struct {
	driver string
	count  int
	states []nvml.State
	lost   map[int]bool
}

func newNVML(gpus int) *fakeNVML {
	f := &fakeNVML{driver: "570.124.06", count: gpus, lost: map[int]bool{}}
	for range gpus {
		s := nvml.State{
			Persistence: nvml.On, MIG: nvml.Off, ECC: nvml.On, ECCPending: nvml.On, Corrected: 3, UncorrectedEver: 1,
			Rows: nvml.Repairs{Corrected: 1, Pending: nvml.Off}, NoSpare: nvml.Off,
			Pages: nvml.Repairs{Corrected: -1, Uncorrected: -1}, Slowed: 5, SM: 345, SMMax: 1980, Degrees: 31, Limit: 87,
			PCIe: nvml.PCIe{Generation: 1, GenerationMax: 4, Width: 16, WidthMax: 16},
		}
		for range 18 {
			s.Links = append(s.Links, nvml.NVLink{Active: true, Switch: true})
		}
		f.states = append(f.states, s)
	}
	return f
}

func (f *fakeNVML) Driver() (string, error) { return f.driver, nil }
func (f *fakeNVML) Count() (int, error)     { return f.count, nil }
func (f *fakeNVML) At(pci string) (nvml.Device, error) {
	var bus int
	if _, err := fmt.Sscanf(pci, "0000:%x:00.0", &bus); err != nil || bus > len(f.states) {
		return 0, &nvml.Error{Call: "nvmlDeviceGetHandleByPciBusId_v2", Result: nvml.ErrNotFound}
	}
	return nvml.Device(bus - 1), nil
}

func (f *fakeNVML) State(d nvml.Device) (nvml.State, error) {
	if f.lost[int(d)] {
		return nvml.State{}, &nvml.Error{Call: "nvmlDeviceGetName", Result: nvml.ErrGPUIsLost}
	}
	return f.states[d], nil
}

// Nothing is found on machines that are well, whatever order threads run in.
func TestGPUsThatAreWell(t *testing.T) {
	for _, seed := range tier.Some(2, []uint64{0, 1}) {
		r := newRig(2, 100*seed+uint64(time.Now().UnixNano())%100, "a", "b")
		r.emu["b"].Plain = seed == 0
		last := "GPU collectives"
		if tier.Race { // these are in TestGPUCollectivesAreBisected
			last = "GPU pairs"
		}
		report := r.check(t, last, config{}, "a", "b")
		require.Empty(t, report.Findings)
		require.Equal(t, well, report.Verdict)
		require.Len(t, report.Of("GPU pairs", "bandwidth"), 2*2)
		if !tier.Race {
			require.Len(t, report.Of("GPU collectives", "all-reduce"), 2)
		}
		require.Len(t, report.Of("GPU memory", "bandwidth"), 2*2)
	}
}

// slowed is emulatedSpeed, with some ways slower by a factor.
func slowed(slow func(from, to int) bool, factor float64) func(from, to int) cudaemu.Speed {
	return func(from, to int) cudaemu.Speed {
		s := emulatedSpeed(from, to)
		if slow(from, to) {
			s.Bandwidth /= factor
		}
		return s
	}
}

func TestGPUFaults(t *testing.T) {
	state := func(change func(s *nvml.State)) func(r *rig) {
		return func(r *rig) { change(&r.nvml["b"].states[1]) }
	}
	for _, c := range tier.Some(7, []struct {
		name   string
		last   string // stage
		gpus   int
		change func(r *rig)
		code   string
		where  string
		says   string
	}{
		{"7 of 8", "GPUs", 8, func(r *rig) { r.emu["b"].Devices, r.nvml["b"] = 7, nil }, "missing-gpus", "host b",
			"7 of 8 GPUs"},
		{"no driver", "GPUs", 2, func(r *rig) {
			r.none["b"] = &cuda.Unavailable{Path: "libcuda.so.1", Reason: cuda.Mismatch, Remedy: "reboot"}
		}, "no-gpus", "host b", "none of 2 GPUs can be used"},
		{"a GPU that cannot be opened", "GPUs", 2, func(r *rig) {
			r.emu["b"].Faults = []cudaemu.Injection{{Call: "cuModuleLoadData", Nth: 1, Device: 2,
				Result: cuda.ErrECCUncorrectable}}
		}, "gpu-fails", "host b, GPU 1", "CUDA_ERROR_ECC_UNCORRECTABLE"},
		{"another driver", "GPUs", 1, func(r *rig) { r.nvml["b"].driver = "535.54.03" }, "drivers-differ", "host b",
			"535.54.03"},
		{"another model", "GPUs", 2, func(r *rig) { r.emu["b"].Shapes = []cudaemu.Device{{}, {Name: "Another GPU"}} },
			"models-differ", "host b, GPU 1", "Another GPU"},
		{"less memory", "GPUs", 2, func(r *rig) { r.emu["b"].Shapes = []cudaemu.Device{{}, {Memory: 1 << 28}} },
			"sizes-differ", "host b, GPU 1", "256 MiB"},

		{"fallen off the bus", "GPU state", 2, func(r *rig) { r.nvml["b"].lost[1] = true }, "gpu-lost", "host b, GPU 1",
			"fallen off the bus"},
		{"uncorrected errors", "GPU state", 2, state(func(s *nvml.State) { s.Uncorrected = 2 }), "ecc-uncorrected",
			"host b, GPU 1", "2 uncorrected"},

		{"a bad cell", "GPU memory", 2, func(r *rig) {
			r.emu["b"].Cells = []cudaemu.Cell{{Device: 1, Byte: 20_000, Bit: 5, One: true}}
		}, "bad-memory", "host b, GPU 1", "bit 5 always 1"},
		{"slow memory", "GPU memory", 2, func(r *rig) {
			r.emu["b"].Speed = slowed(func(from, to int) bool { return from == 1 && to == 1 }, 4)
		}, "slow-memory", "host b, GPU 1", "the others'"},
		{"a slow way to the host", "GPU memory", 2, func(r *rig) {
			r.emu["b"].Speed = slowed(func(from, to int) bool { return from == 1 && to == cudaemu.Host }, 8)
		}, "slow-host-link", "host b, GPU 1", "to the host"},
		{"a GPU falls off while it works", "GPU collectives", 3, func(r *rig) {
			r.emu["b"].Faults = []cudaemu.Injection{{Call: "kernel fill", Nth: 4, Result: cuda.ErrNvlinkUncorrectable}}
		}, "gpu-fails", "host b, GPU ", "CUDA_ERROR_NVLINK_UNCORRECTABLE"},
		{"a GPU is lost", "GPU collectives", 3, func(r *rig) { r.lose = true }, "gpu-fails", "host b, GPU 1",
			"CUDA_ERROR_ECC_UNCORRECTABLE"},
		{"a kernel hangs", "GPU collectives", 3, func(r *rig) {
			r.patience = 4 * time.Second
			r.emu["b"].Faults = []cudaemu.Injection{{Call: "kernel compare", Nth: 3, Device: 0, Hang: true}}
		}, "gpu-hangs", "host b, GPU ", "has not ended after"},

		{"a slow link", "GPU pairs", 3, func(r *rig) {
			r.emu["b"].Speed = slowed(func(from, to int) bool { return from == 1 && to == 2 }, 8)
		}, "slow-pair", "host b, GPU 1 to GPU 2", "over NVLink, the others"},
		{"a GPU with slow links", "GPU pairs", 3, func(r *rig) {
			r.emu["b"].Speed = slowed(func(from, to int) bool {
				return from != to && min(from, to) >= 0 &&
					(from == 1 || to == 1)
			}, 8)
		}, "slow-gpu-links", "host b, GPU 1", "4 of its 4 ways"},
		{"a late link", "GPU pairs", 2, func(r *rig) {
			r.emu["b"].Speed = func(from, to int) cudaemu.Speed {
				s := emulatedSpeed(from, to)
				if from == 1 && to == 0 {
					s.Latency *= 2
				}
				return s
			}
		}, "late-pair", "host b, GPU 0 to GPU 1", "a load takes"},
		{"no access one way", "GPU pairs", 2, func(r *rig) { r.emu["b"].Peers = func(a, b int) bool { return a == 0 } },
			"no-peer-access", "host b, GPU 1 to GPU 0", "the other way"},
		{"a pair over PCIe", "GPU pairs", 3, func(r *rig) {
			r.emu["b"].Link = func(a, b int) cuda.Link {
				if min(a, b) == 0 && max(a, b) == 2 {
					return cuda.PCIe
				}
				return cuda.NVLink
			}
		}, "other-link", "host b, GPU 0 to GPU 2", "PCIe"},
		{"a link that tears lines", "GPU pairs", 2, func(r *rig) {
			r.emu["b"].Plain, r.emu["b"].Seed = false, 1
			r.emu["b"].Tears = func(a, b int) bool { return a == 0 && b == 1 }
		}, "torn-lines", "host b, GPU 0 to GPU 1", "in pieces"},
	}) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(c.gpus, 1, "a", "b")
			c.change(r)
			report := r.check(t, c.last, config{}, "a", "b")
			for i := 0; i < 4 && c.code == "torn-lines" && len(report.Findings) == 0; i++ { // who reads while it tears is chance
				r = newRig(c.gpus, 1, "a", "b")
				c.change(r)
				report = r.check(t, c.last, config{}, "a", "b")
			}
			require.NotEmpty(t, report.Findings)
			first := report.Findings[0]
			require.Equal(t, c.code, first.Code, "%v", report.Findings)
			require.Contains(t, first.Subject.String(), c.where)
			require.Contains(t, first.Text, c.says)
			for _, f := range report.Findings {
				require.Equal(t, c.code, f.Code, "one fault has one name: %v", report.Findings)
			}
		})
	}
}

// Where collectives over all GPUs fail, the fewest that fail together are named.
func TestGPUCollectivesAreBisected(t *testing.T) {
	tier.Long(t)
	t.Parallel() // ranks wait for what others know of a failure
	r := newRig(4, 1, "a")
	r.emu["a"].Faults = []cudaemu.Injection{{Call: "cuLaunchKernel", Chance: 1, Device: 4,
		Result: cuda.ErrNvlinkUncorrectable}}
	stages := gpuStages()
	cfg := config{Stages: []stage{stages[0], stages[len(stages)-1]}, gpus: r.source()}
	cfg.Stages[1].Quick = 2 * time.Minute
	report, errs := runAll(t, local("a"), cfg)
	require.NoError(t, errs[0])
	require.Equal(t, []string{"gpu-collective host a"}, codes(report))
	require.Contains(t, report.Findings[0].Text, "collectives fail on GPUs 2,3: GPU 3:")
	require.Contains(t, report.Findings[0].Text, "CUDA_ERROR_NVLINK_UNCORRECTABLE")
	require.Len(t, report.Of("GPU collectives", "all-reduce"), 1, "the other half is well")
}

// full is a driver one of whose GPUs has no memory left for us, once it is open.
type full struct{ *cudaemu.Machine }

func (f full) MemAlloc(n int) (uintptr, error) {
	if dev, err := f.CtxGetDevice(); err == nil && dev == 1 && n > 8<<10 {
		return 0, cuda.ErrOutOfMemory
	}
	return f.Machine.MemAlloc(n)
}

// TestGPUsThatAreBusy: a GPU whose memory other programs use is not broken, nor is one for which the stage had no time.
func TestGPUsThatAreBusy(t *testing.T) {
	r := newRig(3, 1, "a")
	source := r.source()
	open := source.driver
	source.driver = func(host string) (cuda.Driver, error) {
		d, err := open(host)
		if err != nil {
			return nil, err
		}
		return full{d.(*cudaemu.Machine)}, nil
	}
	stages := slices.Clone(gpuStages()[:4])
	for i := range stages {
		stages[i].Quick = 2 * time.Minute
	}
	report, errs := runAll(t, local("a"), config{Stages: stages, gpus: source})
	require.NoError(t, errs[0])
	for _, f := range report.Findings {
		require.Equal(t, "gpu-busy", f.Code, f.String())
		require.Equal(t, unjudged, f.Severity)
		require.Contains(t, f.Text, "others have its memory")
	}
	require.Contains(t, codes(report), "gpu-busy host a, GPU 1")
	require.NotEmpty(t, report.Of("GPU pairs", "bandwidth"), "the others are measured")

	r = newRig(2, 1, "a")
	late := func(s stage) stage {
		measure := s.Measure
		s.Measure = func(ctx context.Context, j *job) ([]measurement, error) {
			<-ctx.Done()
			return measure(ctx, j)
		}
		s.Quick = 20 * time.Millisecond
		return s
	}
	stages = slices.Clone(gpuStages()[:5])
	stages[0].Quick = 2 * time.Minute
	for i := 2; i < 5; i++ {
		stages[i] = late(stages[i])
	}
	report, errs = runAll(t, local("a"), config{Stages: stages, gpus: r.source()})
	require.NoError(t, errs[0])
	require.Equal(t, slices.Repeat([]string{"not-measured host a, rank 0"}, 3), codes(report))
	require.Contains(t, report.Findings[0].Text, "it was not done within 20ms: is the host busy")
}
