package ptxcheck

import (
	"context"
	"fmt"

	"github.com/ringo-go/ringo/internal/emu/simt"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A run is a case under one seed.
type run struct {
	plan   *plan
	world  *simt.World
	memory *weakmem.Memory
	grids  []*simt.Grid    // by GPU: the running grid, nil if none
	next   []int           // by GPU: index of the launch after that grid
	clocks []weakmem.Clock // by GPU: the end of the last launch
	found  []found
	halted bool // a deadlock, or no end
	failed bool // a kernel was stopped
}

// found is a Finding, and after how many steps the run made it.
type found struct {
	Finding
	key   key
	steps uint64
}

// A run is a deadlock when its threads have only polled for this many instructions: enough for every thread to look
// several times, even under the most unkind seed and with old values.
const (
	stall     = 2_000_000
	fairStall = 50_000 // where warps run in rotation
	perThread = 1000   // the least, times the resident threads
)

// endless begins the detail of a finding of kind Endless.
const endless = "it has not ended"

// start makes a run. Its kernels begin with the first step.
func (p *plan) start(seed uint64, more ...func(*simt.Config)) *run {
	r := &run{plan: p, grids: make([]*simt.Grid, p.GPUs), next: make([]int, p.GPUs), clocks: make([]weakmem.Clock, p.GPUs)}
	r.memory = weakmem.New(weakmem.Config{
		Seed: seed, OldLoads: seed%2 == 1, Report: r.reported,
		Lines:  func(gpu int, s *weakmem.Allocation) bool { return s.Device == gpu || p.Link == "nvlink" },
		Access: func(gpu int, s *weakmem.Allocation) bool { return s.Device == gpu || p.Link != "none" },
	})
	for i := range p.memory {
		m := &p.memory[i]
		s := weakmem.Allocation{Addr: m.addr, Data: make([]byte, m.size), Device: m.gpu, Name: m.label(p.GPUs)}
		if m.data == nil {
			s.Written = make([]uint64, (m.size+63)/64)
		}
		copy(s.Data, m.data)
		if err := r.memory.Map(s); err != nil {
			panic(err) // their addresses do not overlap
		}
	}
	config := simt.Config{Seed: seed, Memory: r.memory, Stall: max(stall, perThread*p.threads)}
	for range p.GPUs {
		config.Devices = append(config.Devices, simt.Shape{SMs: p.SMs, ThreadsPerSM: 2048, BlocksPerSM: 32,
			SharedPerSM: 228 << 10, SharedPerBlock: 227 << 10, ThreadsPerBlock: 1024})
	}
	for _, f := range more {
		f(&config)
	}
	if config.Follow != nil {
		config.Stall = max(fairStall, perThread*p.threads)
	}
	r.world = simt.NewWorld(config)
	return r
}

// label is the name of memory in reports: "x@1".
func (m *memory) label(gpus int) string {
	if gpus == 1 {
		return m.name
	}
	return fmt.Sprintf("%s@%d", m.name, m.gpu)
}

func (r *run) reported(f *weakmem.Fault) bool {
	r.note(r.plan.finding(f))
	return true
}

func (r *run) note(f Finding, k key) {
	r.found = append(r.found, found{f, k, r.world.Instructions()})
}

// step begins kernels, runs a turn, and ends kernels. It is false when all is over.
func (r *run) step() bool {
	idle := true
	for gpu, g := range r.grids {
		if g == nil && r.next[gpu] < len(r.plan.launches[gpu]) {
			r.begin(gpu)
		}
		idle = idle && r.grids[gpu] == nil
	}
	if idle {
		r.compare()
		return false
	}
	r.world.Step(1)
	if r.world.Instructions() > r.plan.Instructions {
		r.world.Halt(fmt.Sprintf("%s after %d instructions of all threads", endless, r.plan.Instructions))
	}
	var faults []*weakmem.Fault
	for gpu, g := range r.grids {
		if g == nil || !g.Done() {
			continue
		}
		if f := g.Fault(); f != nil {
			faults = append(faults, f)
		}
		r.clocks[gpu], r.grids[gpu] = g.Clock(), nil
	}
	if faults != nil {
		r.stopped(faults)
	}
	return faults == nil
}

func (r *run) begin(gpu int) {
	g := r.plan.launches[gpu][r.next[gpu]]
	g.After = r.clocks[gpu]
	r.next[gpu]++
	r.grids[gpu] = &g
	if err := r.world.Start(&g); err != nil {
		panic(err) // prepare has tried
	}
}

// stopped notes what stopped kernels, which ends the run.
func (r *run) stopped(faults []*weakmem.Fault) {
	r.failed = true
	f, k := r.plan.finding(faults[0])
	for _, other := range faults[1:] {
		if other.Kind == weakmem.Deadlock {
			f.Detail += fmt.Sprintf("\nGPU %d, kernel %s: %s", other.Device, other.Kernel, r.plan.named(other.Detail))
		}
	}
	r.halted = faults[0].Kind == weakmem.Deadlock
	r.note(f, k)
}

// compare notes a finding for each buffer without the wanted contents.
func (r *run) compare() {
	for i := range r.plan.wants {
		w := &r.plan.wants[i]
		m := w.memory
		s, _ := r.memory.Find(m.addr)
		first, n := w.differs(s.Data)
		if n == 0 {
			continue
		}
		at := first * m.kind.size
		detail := fmt.Sprintf("%s[%d] is %s, want %s", m.label(r.plan.GPUs), first, m.kind.text(s.Data[at:]),
			m.kind.text(w.data[at:]))
		if n > 1 {
			detail += fmt.Sprintf("; %d of %d elements differ", n, m.size/m.kind.size)
		}
		r.note(Finding{Kind: WrongResult, Detail: detail}, key{kind: WrongResult, memory: m.name})
	}
}

// all carries out the run.
func (r *run) all(ctx context.Context) error {
	for turns := 0; r.step(); turns++ {
		if turns%256 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// until carries out the run while more returns true. It reports whether the finding was made.
func (r *run) until(k key, more func() bool) bool {
	for looked := 0; ; {
		going := r.step()
		for ; looked < len(r.found); looked++ {
			if r.found[looked].key == k {
				return true
			}
		}
		if !going || !more() {
			return false
		}
	}
}
