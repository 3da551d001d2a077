package gpucomm

import (
	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/choice"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/collective"
)

// maxBatch is the most calls of a batch. Calls that depend on each other take a launch each; a
// stream holds some thousand launches, and then a thread that drives several GPUs would wait.
const maxBatch = 256

// Alike is how many of the next calls of a group Batch carries out together, 1 if it does
// not serve. All ranks find the same, so what a rank alone knows does not count: on which
// streams the calls are, or whether they depend on each other.
func (g *Comm) Alike(calls []*call.Call) int {
	n := 0
	for n < min(len(calls), maxBatch) && g.small(calls[n]) && calls[n].Type == calls[0].Type && calls[n].Op.Kind == calls[0].Op.Kind {
		n++
	}
	return max(1, n)
}

// small reports whether a call may be part of a batch. A PreMulSum may not: each rank scales
// its data first.
func (g *Comm) small(c *call.Call) bool {
	switch {
	case c.Kind != call.AllReduce, !c.OnDevice(), !g.engine.CanMany(c.Bytes()):
		return false
	case c.Op.Kind == kernels.KindPreMulSum, c.Op.Kind == kernels.KindUser:
		return false
	}
	ans := g.Answer(c)
	return ans.By == choice.ByKernel && ans.Kernel == collective.OneShot
}

// Batch queues checked calls that are alike, in a few kernels. They may be on different
// streams.
func (g *Comm) Batch(calls []*call.Call) error {
	for _, c := range calls {
		if err := g.ours(c); err != nil {
			return err
		}
	}
	return g.with(calls[0], func() error {
		for i, c := range calls {
			if err := g.admitMemories(c); err != nil {
				return err
			}
			if i == 0 || c.Stream != calls[i-1].Stream {
				if err := g.admitStream(c.Stream); err != nil {
					return err
				}
			}
		}
		if err := g.Life.Begin(calls[0], g); err != nil {
			return g.refusal(calls[0], err)
		}
		longest := 0
		for _, c := range calls {
			longest = max(longest, c.Bytes())
		}
		g.batch = g.engine.Batch(len(calls), longest, g.chooser.Budget.SideBySide())
		for len(calls) > 0 {
			n := 1
			for n < len(calls) && calls[n].Stream == calls[0].Stream {
				n++
			}
			if err := g.onStream(calls[:n]); err != nil {
				return err
			}
			calls = calls[n:]
		}
		return nil
	})
}

// onStream queues the calls of the current batch that come next, all on one stream.
func (g *Comm) onStream(calls []*call.Call) error {
	s := calls[0].Stream
	if err := g.admitStream(s); err != nil { // the current call's stream may be another one
		return err
	}
	g.observed.arrive()
	err := g.queueBatch(s, calls)
	g.observed.issued(err)
	return err
}

func (g *Comm) queueBatch(s gpu.Stream, calls []*call.Call) error {
	g.jobs = g.jobs[:0]
	r := &g.request
	for _, c := range calls {
		if err := g.Numberer.Number(r, c, call.OneShot, g.captures); err != nil {
			return g.Life.Fail(c, r.Seq(), err, g)
		}
		g.observed.begin(c, r)
		g.jobs = append(g.jobs, g.jobOf(c, r))
	}
	done := 0
	err := g.after(s, func() error {
		end := g.endEvent()
		for i := range g.jobs {
			g.jobs[i].Event = end
		}
		for done < len(calls) {
			n, err := g.engine.RunMany(&g.batch, g.jobs[done:])
			if err != nil {
				return err
			}
			done += n
		}
		return nil
	})
	if err != nil {
		return g.Life.Fail(calls[min(done, len(calls)-1)], 0, err, g)
	}
	return nil
}
