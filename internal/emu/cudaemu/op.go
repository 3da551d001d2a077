package cudaemu

import (
	"time"

	"github.com/ringo-go/ringo/internal/emu/simt"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// An op is a piece of work that was queued. Ops form a graph: streams, events
// and graphs are ways to say which ops an op comes after.
type op struct {
	work     work
	ctx      *context
	priority int
	waits    int   // ops before it that are not done
	next     []*op // ops that wait for it

	after weakmem.Clock // of its beginning
	clock weakmem.Clock // of its end
	done  bool
	from  time.Duration // modelled: when all before it was done
	at    time.Duration // when it was done

	hold    int        // rounds to hold it back
	number  uint64     // of the machine
	added   uint64     // executor.rounds when it was ready
	begun   bool       // step was called
	hangs   bool       // a kernel that an Injection makes hang
	grid    *simt.Grid // of a kernel that runs
	flag    bool       // a host function has returned
	counter uint64     // of an interprocess event
	onDone  func()
}

// work is the action of an op. It is immutable: launches of a graph share it.
type work interface {
	// step does the work, or begins it and at later calls looks whether it is done. If
	// it sets no clock, the op's clock is that of its beginning.
	step(m *Machine, o *op) (done bool)
}

// nothing is work that only joins the ops before it.
type nothing struct{}

func (nothing) step(*Machine, *op) bool { return true }

// submit queues work after other ops; nil ones do not count. A launch may have a priority of
// its own.
func (m *Machine) submit(ctx *context, priority int, w work, deps ...*op) *op {
	if k, ok := w.(kernelWork); ok && k.launch.Priority != 0 {
		priority = k.launch.Priority
	}
	m.submitted++
	o := &op{work: w, number: m.submitted, ctx: ctx, priority: priority, after: m.mem.Host(), from: m.hostTime()}
	for _, d := range deps {
		switch {
		case d == nil:
		case d.done:
			o.after, o.from = weakmem.Join(o.after, d.clock), max(o.from, d.at)
		default:
			d.next = append(d.next, o)
			o.waits++
		}
	}
	switch w.(type) {
	case copyWork, writeWork:
		if m.cfg.CopyDelay > 0 {
			o.hold = m.rng.IntN(m.cfg.CopyDelay + 1)
		}
	}
	if o.waits == 0 {
		m.exec.add(o)
	}
	return o
}

// finish marks an op done and frees those that waited for it.
func (m *Machine) finish(o *op) {
	o.clock = weakmem.Join(o.clock, o.after)
	o.done, o.at = true, m.end(o)
	if o.onDone != nil {
		o.onDone()
	}
	for _, n := range o.next {
		n.after, n.from = weakmem.Join(n.after, o.clock), max(n.from, o.at)
		if n.waits--; n.waits == 0 {
			m.exec.add(n)
		}
	}
	o.next, o.work, o.grid, o.onDone = nil, nil, nil, nil
}

// name is what the op does, in words: a kernel's name, or a few words.
func (o *op) name() string {
	switch w := o.work.(type) {
	case kernelWork:
		return w.f.kernel.Name
	case copyWork, writeWork, readWork:
		return "a copy"
	case hostWork:
		return "a host function"
	}
	return "other work of a stream"
}
