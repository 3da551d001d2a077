package gpucomm

import (
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/rankorder"
	"github.com/ringo-go/ringo/core/request"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/collective"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/sched"
)

// A queue makes kernels and copies of calls, and queues them on their streams.
type queue struct {
	windows

	latest   choice.Latest
	programs map[choice.Key]*grid.Program
	prepared map[prepared]bool // what PrepareAll has loaded
	layout   [4][]int          // counts and offsets of the v-variants, reused
	jobs     []grid.Job        // of the last batch, reused
	exchange exchange
	spare    *cuda.Growing // for copies of In

	reduction *rankorder.Reduction
	workplace *workplace
}

func (q *queue) open() (err error) {
	q.programs, q.prepared = map[choice.Key]*grid.Program{}, map[prepared]bool{}
	q.spare = q.upkeep.estate.memory()
	if q.exchange.meeting, err = q.upkeep.event(); err != nil {
		return err
	}
	return q.prepareReduction()
}

// A task is what is known of a call on its way to its stream. It is made for the call and
// passed down; what outlives the call is in the parts of the Comm.
type task struct {
	entry
	request request.Request
	answer  choice.Answer
	at      placement // of its memory in windows
}

// Do queues a checked call on GPU memory on its stream. An error is a *call.Error.
func (q *queue) Do(c *call.Call) error {
	return q.known.admitted(c, func(e entry) error {
		t := task{entry: e}
		t.observed = q.upkeep.observed.arrive()
		t.answer, t.at = q.answer(c)
		err := q.Numberer.Carry(&t.request, c, &t.answer, t.captures, q, func() error {
			t.observed.add(c, &t.request)
			return q.dispatch(c, &t)
		})
		t.observed.issued(err)
		return err
	})
}

// Answer says what carries a call out, and why.
func (q *queue) Answer(c *call.Call) choice.Answer {
	ans, _ := q.answer(c)
	return ans
}

// answer is Answer, and where the call's memory is in windows.
func (q *queue) answer(c *call.Call) (choice.Answer, placement) {
	at, registered := q.windows.place(c)
	ask := question(c, registered)
	ask.NoCopies = at.stalls()
	return *q.latest.Choose(&q.chooser, ask), at
}

func question(c *call.Call, registered bool) choice.Question {
	q := choice.QuestionOf(c)
	q.OnGPU, q.Registered = true, registered
	return q
}

// dispatch queues a call by what the answer says. The device's context is current.
func (q *queue) dispatch(c *call.Call, t *task) error {
	switch t.answer.By {
	case choice.Alone:
		return q.alone(c, t)
	case choice.ByWindow, choice.ByCopies:
		return q.inWindows(c, t)
	case choice.ByNorm:
		return q.byNorm(c, t)
	case choice.ByFold:
		if c.Norm != nil {
			return q.finishRows(c, t)
		}
		return q.inOrder(c, t)
	case choice.ByShares:
		return q.reduceInShares(c, t)
	case choice.ByKernel:
		return q.byKernel(c, t)
	}
	j, err := q.prepare(c, t)
	if err != nil {
		return err
	}
	return q.order.after(&t.entry, func() error {
		if c.CopiesIn() {
			if err := q.copyIn(&j); err != nil {
				return err
			}
		}
		if t.answer.Phases > 0 {
			return q.inPhases(t, &j)
		}
		return q.carry(&j, &t.answer)
	})
}

// carry queues a job for a schedule of the answer, by the way that the answer takes for its facts.
func (q *queue) carry(j *grid.Job, ans *choice.Answer) error {
	f, err := q.engine.Facts(j)
	if err != nil {
		return err
	}
	switch ans.Way(&f) {
	case collective.ByMessages:
		return q.engine.RunMessages([]*grid.Job{j})
	case collective.BySideBySide:
		return q.engine.RunSideBySide(j)
	case collective.ByLinger:
		return q.engine.RunLingering(j)
	case collective.ByBulk:
		return q.engine.RunBulk(j)
	}
	return q.engine.RunThreads(j)
}

// alone queues the call of a communicator's only rank: a copy, or nothing in place.
func (q *queue) alone(c *call.Call, t *task) error {
	if t.request.Out == 0 || c.In.Ptr() == c.Out.Ptr() {
		return nil
	}
	return q.order.after(&t.entry, func() error {
		return q.Device.Driver().MemcpyAsync(c.Out.Ptr(), c.In.Ptr(), t.request.Out, c.Stream)
	})
}

// byKernel queues a call for a direct kernel.
func (q *queue) byKernel(c *call.Call, t *task) error {
	r, j := &t.request, t.job(c)
	return q.order.after(&t.entry, func() error {
		if c.CopiesIn() && c.In.Ptr() != c.Out.Ptr() {
			if err := q.copyIn(&j); err != nil {
				return err
			}
		}
		j.Event = q.order.endEvent(&t.entry)
		return q.engine.RunDirect(&j, t.answer.Kernel, sched.Rank(max(0, r.Key.Peer)), c.Count*r.Size)
	})
}

// shareProgram is the reduce-scatter with which an all-reduce by copy engines begins.
var shareProgram = choice.Key{Kind: call.ReduceScatter, Algo: call.Ring, Peer: -1}

// inWindows queues a call whose memory is in windows.
func (q *queue) inWindows(c *call.Call, t *task) (err error) {
	j, p, kernel := t.job(c), &t.at, t.answer.Kernel
	j.Stamp = call.StampAt(j.Stamp, p.where)
	q.placements.add(p)
	in, out := p.in.inGrid(), p.out.inGrid()
	copies := t.answer.By == choice.ByCopies
	if copies && c.Kind == call.AllReduce { // begins with a reduce-scatter by this program
		if j.Program, err = q.program(shareProgram); err != nil {
			return err
		}
	}
	root := sched.Rank(max(0, t.request.Key.Peer))
	defer q.order.uses(&t.entry, p, copies)
	return q.order.after(&t.entry, func() error {
		if c.CopiesIn() && (copies || c.In.Ptr() != c.Out.Ptr()) {
			if err := q.copyIn(&j); err != nil {
				return err
			}
		}
		if copies {
			return q.order.copyStream.instead(q.Device.Driver(), c.Stream, func(s gpu.Stream) error {
				j.Stream = s
				if c.Kind == call.AllReduce {
					if err := q.scatter(&j, t, in, out, c.Bytes()); err != nil {
						return err
					}
				}
				return q.engine.RunCopies(&j, kernel, in, out, root, c.Bytes())
			})
		}
		j.Event = q.order.endEvent(&t.entry)
		return q.engine.RunWindow(&j, kernel, in, out, root, c.Bytes())
	})
}

// scatter queues the reduce-scatter that an all-reduce by copy engines begins with.
func (q *queue) scatter(j *grid.Job, t *task, in, out grid.WindowOffset, bytes int) error {
	half, err := q.engine.ScatterJob(j, in, out, bytes)
	if err != nil {
		return err
	}
	if err := q.engine.Prepare(half.Reducer); err != nil {
		return err
	}
	return q.carry(half, &t.answer)
}

// copyIn queues a copy of In to scratch memory, and has the job read that: Out is the same
// memory, and the operation writes some of Out before it has read all of In.
func (q *queue) copyIn(j *grid.Job) error {
	spare, err := q.scratch(j.In.Len())
	if err != nil {
		return err
	}
	if err := q.Device.Driver().MemcpyAsync(spare.Ptr(), j.In.Ptr(), j.In.Len(), j.Stream); err != nil {
		return err
	}
	j.In = spare
	return nil
}

// scratch is n bytes of GPU memory for an operation. All operations use the same memory, one after the other.
func (q *queue) scratch(n int) (mem.Region, error) {
	at, err := q.spare.AtLeast(n)
	if err != nil {
		return mem.Region{}, err
	}
	return mem.Device(q.Device.Number(), at, n), nil
}

// job is the job of a call. A job for a schedule needs a program besides.
func (t *task) job(c *call.Call) grid.Job {
	r := &t.request
	return grid.Job{
		In: c.In.Slice(0, r.In), Out: c.Out.Slice(0, r.Out),
		Reducer: r.Reducer, Scalar: r.Scalar, Early: r.Op == kernels.KindPreMulSum, // ranks may have different scalars
		Stamp: r.Stamp, Each: r.Each, Blocks: t.answer.Blocks, Stream: t.handle, Capture: t.capture.ID,
	}
}

// prepare makes the job of a call that a schedule carries out. Layouts of v-variants are
// good until the next call.
func (q *queue) prepare(c *call.Call, t *task) (grid.Job, error) {
	p, err := q.program(t.request.Key)
	if err != nil {
		return grid.Job{}, err
	}
	j := t.job(c)
	j.Program = p
	j.InL, j.OutL = t.request.Layouts(c, q.Life.Rank, p.Shape(), &q.layout)
	return j, nil
}

// program finds or makes the program of a key.
func (q *queue) program(key choice.Key) (*grid.Program, error) {
	if p := q.programs[key]; p != nil {
		return p, nil
	}
	p, err := q.engine.Compile(key.Schedule(q.chooser.Topo), sched.Rank(q.Life.Rank))
	if err == nil {
		q.programs[key] = p
	}
	return p, err
}
