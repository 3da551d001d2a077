package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ringo-go/ringo/bench/meter"
	"github.com/ringo-go/ringo/cmd/check/nvml"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
)

// gpuStages are the stages about GPUs. The first live rank of each host measures all GPUs that it can see.
func gpuStages() []stage {
	return []stage{
		{Name: "GPUs", Asks: "Does every host have its GPUs, of one model, and can they be used?",
			Quick: 10 * time.Second, Full: time.Minute, Measure: countGPUs, Judge: judgeGPUs},
		{Name: "GPU state", Asks: "What does the driver say of its GPUs' memory, clocks, PCIe and NVLink?",
			Quick: 5 * time.Second, Full: 20 * time.Second, Measure: onGPUs(askGPUs), Judge: judgeState},
		{Name: "GPU memory", Asks: "Does each GPU's memory keep what is written, and is it as fast as the others'?",
			Quick: 10 * time.Second, Full: 2 * time.Minute, Measure: onGPUs(testMemories), Judge: judgeMemory},
		{Name: "GPU pairs", Asks: "Does each GPU reach each other one of its host, whole lines, right bytes, and as fast " +
			"as the others?",
			Quick: 10 * time.Second, Full: 2 * time.Minute, Measure: onGPUs(measurePairs), Judge: judgePairs},
		{Name: "GPU collectives", Asks: "Are collectives over each host's GPUs right?",
			Quick: 10 * time.Second, Full: 2 * time.Minute, Measure: onGPUs(collectGPUs), Judge: judgeCollectives},
	}
}

// A manager is the part of NVML that stages use; *nvml.Library is one.
type manager interface {
	Driver() (string, error)
	Count() (int, error)
	At(pci string) (nvml.Device, error)
	State(nvml.Device) (nvml.State, error)
}

// A gpuSource opens the drivers and libraries of a host; tests have their own.
type gpuSource struct {
	driver   func(host string) (cuda.Driver, error)
	manager  func(host string) (manager, error)
	nccl     func(file string) (ncclLibrary, error)
	patience time.Duration // bound of each piece of work on a GPU
}

// patience is how long a GPU may take for a piece of work, which takes milliseconds on a good GPU.
const patience = 4 * time.Second

// source is where this job's GPUs come from.
func (c *config) source() *gpuSource {
	switch {
	case c.gpus != nil:
		return c.gpus
	case c.GPU.Emulate > 0:
		emulator := cudaemu.Config{Devices: c.GPU.Emulate, Seed: c.GPU.Seed, Plain: c.GPU.Unchecked, Speed: emulatedSpeed}
		return &gpuSource{
			driver:   func(string) (cuda.Driver, error) { return cudaemu.New(emulator) },
			manager:  func(string) (manager, error) { return nil, errors.New("emulated GPUs have none") },
			nccl:     func(string) (ncclLibrary, error) { return nil, errors.New("NCCL cannot use emulated GPUs") },
			patience: 5 * patience,
		}
	}
	return &gpuSource{
		driver:   func(string) (cuda.Driver, error) { return cuda.Open(c.GPU.Library) },
		manager:  func(string) (manager, error) { return nvml.Open("") },
		nccl:     openNCCL,
		patience: patience,
	}
}

// emulatedSpeed is that of emulated GPUs: 1 TB/s within, 100 GB/s between them, 25 GB/s to the host.
func emulatedSpeed(from, to int) cudaemu.Speed {
	switch {
	case from == cudaemu.Host || to == cudaemu.Host:
		return cudaemu.Speed{Latency: time.Microsecond, Bandwidth: 25e9}
	case from == to:
		return cudaemu.Speed{Latency: 300 * time.Nanosecond, Bandwidth: 1e12}
	}
	return cudaemu.Speed{Latency: 700 * time.Nanosecond, Bandwidth: 100e9}
}

// A gpuSet holds the GPUs of a host that a rank has opened, for all stages.
type gpuSet struct {
	use     sync.Mutex // held by a stage
	driver  cuda.Driver
	err     error // of opening it
	opened  bool
	gpus    []*meter.GPU // by number; nil for one that cannot be used
	machine *gpu.Machine // for communicators; nil before the first
	manager manager
	without string // why there is no manager
}

// gpuSet is the host's GPUs for the stage's use, until done is called. The error skips the stage on ranks that do not
// look at GPUs.
func (j *job) gpuSet() (s *gpuSet, done func(), err error) {
	if !j.Leader() {
		return nil, nil, skip("another rank of the host looks at its GPUs")
	}
	s = &j.gpus
	if !s.use.TryLock() {
		return nil, nil, errors.New("the GPUs are still in use by a stage that does not end")
	}
	if !s.opened {
		s.opened = true
		source := j.cfg.source()
		if s.driver, s.err = source.driver(j.Host()); s.err == nil {
			var err error
			if s.manager, err = source.manager(j.Host()); err != nil {
				s.manager, s.without = nil, err.Error()
			}
		}
	}
	if s.err != nil {
		s.use.Unlock()
		return nil, nil, s.err
	}
	return s, s.use.Unlock, nil
}

// onGPUs is the Measure of a stage that skips hosts without GPUs, which the first stage has reported.
func onGPUs(f func(context.Context, *job, *gpuSet) ([]measurement, error)) func(context.Context, *job) (
	[]measurement, error) {
	return func(ctx context.Context, j *job) ([]measurement, error) {
		s, done, err := j.gpuSet()
		if err != nil {
			return nil, noGPUs(err)
		}
		defer done()
		return f(ctx, j, s)
	}
}

// noGPUs turns the error of a host without a driver into a skip.
func noGPUs(err error) error {
	if _, skip := skipped(err); skip {
		return err
	}
	return skip("no GPUs")
}

// close gives the GPUs back, unless a stage hangs.
func (s *gpuSet) close() {
	if !s.use.TryLock() {
		return
	}
	defer s.use.Unlock()
	for _, g := range s.gpus {
		if g != nil {
			g.Close()
		}
	}
	s.gpus = nil
	if m, ok := s.driver.(*cudaemu.Machine); ok {
		if s.machine != nil { // communicators may be giving memory back in the background
			_ = s.machine.Close()
		}
		m.Close()
	}
}

// drop gives up a GPU that failed, and returns a measurement with the reason. A GPU whose memory other programs use is
// kept.
func (s *gpuSet) drop(host string, i int, err error) measurement {
	if errors.Is(err, cuda.ErrOutOfMemory) {
		return measurement{Subject: of(host, gpuName(i)), Quantity: "busy", Text: firstLine(err.Error())}
	}
	s.gpus[i] = nil
	what := "error"
	if hang := (*meter.HangError)(nil); errors.As(err, &hang) {
		what = "hang"
	}
	text, _, _ := strings.Cut(err.Error(), "\n") // further lines are errors of giving back memory of a lost GPU
	return measurement{Subject: of(host, gpuName(i)), Quantity: what, Text: text}
}

// live are the numbers of the GPUs that can be used.
func (s *gpuSet) live() (live []int) {
	for i, g := range s.gpus {
		if g != nil {
			live = append(live, i)
		}
	}
	return live
}

func gpuName(i int) string { return fmt.Sprint("GPU ", i) }

// outOfTime reports whether err means that the stage's time is over, which is no fault of a GPU.
func outOfTime(ctx context.Context, err error) bool {
	hang := (*meter.HangError)(nil)
	return ctx.Err() != nil && errors.Is(err, ctx.Err()) && !errors.As(err, &hang)
}

// each calls f for all GPUs at once and gathers the measurements. A GPU that fails is given up.
func (s *gpuSet) each(ctx context.Context, host string,
	f func(i int, g *meter.GPU) ([]measurement, error)) (all []measurement) {
	lists, errs := make([][]measurement, len(s.gpus)), make([]error, len(s.gpus))
	var wg sync.WaitGroup
	for i, g := range s.gpus {
		if g != nil {
			wg.Go(func() {
				if errs[i] = ctx.Err(); errs[i] == nil {
					lists[i], errs[i] = f(i, g)
				}
			})
		}
	}
	wg.Wait()
	for i, err := range errs {
		all = append(all, lists[i]...)
		if err != nil && !outOfTime(ctx, err) {
			all = append(all, s.drop(host, i, err))
		}
	}
	return all
}

// countGPUs opens the GPUs.
func countGPUs(ctx context.Context, j *job) ([]measurement, error) {
	host := j.Host()
	s, done, err := j.gpuSet()
	if missing := (*cuda.Unavailable)(nil); errors.As(err, &missing) {
		return []measurement{{Subject: of(host, ""), Quantity: "GPUs", Text: err.Error()}}, noGPUs(err)
	} else if err != nil {
		return nil, err
	}
	defer done()
	d := s.driver
	n, err := d.DeviceGetCount()
	if err != nil {
		return []measurement{{Subject: of(host, ""), Quantity: "GPUs", Text: err.Error()}}, err
	}
	about := cuda.Describe(d)
	list := []measurement{
		{Subject: of(host, ""), Quantity: "GPUs", Value: float64(n)},
		{Subject: of(host, ""), Quantity: "CUDA", Text: about.VersionString()},
	}
	if s.manager != nil {
		if v, err := s.manager.Driver(); err == nil {
			list = append(list, measurement{Subject: of(host, ""), Quantity: "driver", Text: v})
		}
		if v, err := s.manager.Count(); err == nil {
			list = append(list, measurement{Subject: of(host, ""), Quantity: "GPUs in all", Value: float64(v)})
		}
	} else {
		list = append(list, measurement{Subject: of(host, ""), Quantity: "no NVML", Text: s.without})
	}
	s.gpus = make([]*meter.GPU, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { s.gpus[i], errs[i] = meter.Open(d, i, j.cfg.source().patience) })
	}
	wg.Wait()
	for i, a := range about.Devices {
		at := of(host, gpuName(i))
		list = append(list,
			measurement{Subject: at, Quantity: "model", Text: a.Name},
			measurement{Subject: at, Quantity: "size", Value: float64(a.Memory), Unit: "B"},
			measurement{Subject: at, Quantity: "PCI", Text: a.PCI},
			measurement{Subject: at, Quantity: "UUID", Text: a.UUID})
		if errs[i] != nil {
			list = append(list, s.drop(host, i, errs[i]))
		}
	}
	return list, ctx.Err()
}

// judgeGPUs compares hosts.
func judgeGPUs(r *report, cfg *config) []finding {
	f := &findings{r: r}
	const stage = "GPUs"
	counts := r.Of(stage, "GPUs")
	want, whose := cfg.ExpectGPUs, "expected"
	if want == 0 {
		whose = "on most hosts"
		votes := map[int]int{}
		for _, m := range counts {
			n := int(m.Value)
			if votes[n]++; votes[n] > votes[want] || votes[n] == votes[want] && n > want {
				want = n
			}
		}
	}
	for _, m := range counts {
		switch n := int(m.Value); {
		case n >= want:
		case n == 0:
			f.add(broken, "no-gpus", m.Subject, float64(want), "none of %s can be used: %s", count(want, "GPU"), m.Text)
		default:
			f.add(degraded, "missing-gpus", m.Subject, float64(want-n),
				"%d of %d GPUs: %d are %s; look at nvidia-smi, CUDA_VISIBLE_DEVICES and its kernel log (Xid 79: one has fallen "+
					"off the bus)", n, want, want, whose)
		}
	}
	if want == 0 && len(counts) > 0 {
		f.nowhere(counts)
	}
	visible := bySubject(counts)
	for _, m := range r.Of(stage, "GPUs in all") {
		if seen, ok := visible[m.Subject]; ok && seen.Value < m.Value {
			f.add(well, "hidden-gpus", m.Subject, 0,
				"%.0f of the %.0f GPUs that the driver has are visible here: CUDA_VISIBLE_DEVICES or the container leaves the "+
					"others out", seen.Value, m.Value)
		}
	}
	for _, q := range []struct{ quantity, code, text string }{
		{"driver", "drivers-differ", "its driver is %[1]s, and %[2]s on %[3]s: install the same everywhere"},
		{"CUDA", "drivers-differ", "its driver is of CUDA %[1]s, and %[2]s on %[3]s: install the same everywhere"},
		{"model", "models-differ", "it is a %[1]s, and the others are %[2]s: collectives go at the pace of the slowest"},
		{"size", "sizes-differ", "it has %[1]s of memory, and the others %[2]s: MIG, a reserved part, or another model"},
	} {
		for _, o := range unlike(r.Of(stage, q.quantity)) {
			f.add(degraded, q.code, o.Subject, 0, q.text, o.said(), o.most, o.who)
		}
	}
	f.gpuFailures(stage)
	return f.list
}

// nowhere adds the finding for a job without any usable GPU: a fault where hosts have GPUs, and else a remark.
func (f *findings) nowhere(counts []measurement) {
	cards, there := bySubject(f.r.Of("host", "GPUs on PCIe")), false
	for _, m := range counts {
		if n := cards[m.Subject].Value; n > 0 {
			there = true
			f.add(broken, "no-gpus", m.Subject, n,
				"none of the %s on its PCIe buses can be used: %s; -device host leaves GPUs alone", count(int(n), "GPU"), m.Text)
		}
	}
	if !there {
		f.add(well, "no-gpus", subject{}, 0,
			"no host has a GPU, so none was looked at; -device cuda takes that for a fault (%s)", counts[0].Text)
	}
}

// gpuFailures adds findings for GPUs that failed or hung in a stage.
func (f *findings) gpuFailures(stage string) {
	for _, m := range f.r.Of(stage, "hang") {
		f.add(broken, "gpu-hangs", m.Subject, 500, "%s: it hangs; look for an Xid in its kernel log, and reset it", m.Text)
	}
	for _, m := range f.r.Of(stage, "busy") {
		f.add(unjudged, "gpu-busy", m.Subject, 0,
			"%s: others have its memory, so it was not measured; look at nvidia-smi for who, and check again when it is idle",
			m.Text)
	}
	for _, m := range f.r.Of(stage, "error") {
		f.add(broken, "gpu-fails", m.Subject, 500,
			"%s: the driver can use it no longer; look for an Xid in its kernel log, and reset or replace it", m.Text)
	}
}
