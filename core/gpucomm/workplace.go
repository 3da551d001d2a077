package gpucomm

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/rankorder"
	"github.com/ringo-go/ringo/core/request"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	combiner "github.com/ringo-go/ringo/kernels/device"
	"github.com/ringo-go/ringo/mem"
)

// A workplace is the rankorder.Workplace of a GPU.
type workplace struct {
	q        *queue
	combiner *combiner.Combiner
	rooms    [rankorder.Uses]*cuda.Growing
	args     combiner.Args // reused
	src      [1]mem.Region // reused
	now      fold
}

// A fold is the task of a reduction in order of rank, while rankorder calls the workplace for it.
type fold struct {
	job    grid.Job       // what is the same in all jobs
	gather call.Algo      // of all-gathers
	answer *choice.Answer // of the call
}

// roomOnDevice is how many bytes of GPU memory hold shares: enough that launching the kernels
// of a piece takes little of the time.
const roomOnDevice = 8 << 20

// openReduction makes what reductions in order of rank need, once.
func (q *queue) openReduction() error {
	if q.reduction != nil {
		return nil
	}
	ctx, err := q.Device.Context()
	if err != nil {
		return err
	}
	p := &workplace{q: q}
	if p.combiner, err = combiner.Borrow(q.Device.Driver(), ctx); err != nil {
		return err
	}
	q.upkeep.estate.keep(p.combiner.Close)
	for i := range p.rooms {
		p.rooms[i] = q.upkeep.estate.memory()
	}
	q.workplace = p
	q.reduction = rankorder.New(q.Life.Rank, q.Life.Size, q.workplace, choice.WholeOnGPU, roomOnDevice)
	return nil
}

// prepareReduction allocates the shares when the communicator is opened, if reductions in order of rank will need them:
// where direct kernels do not take data of any length. To allocate later may wait for kernels that wait for this rank.
func (q *queue) prepareReduction() error {
	if !q.chooser.InOrder || q.Life.Size == 1 || q.engine.LongestDirect() == grid.MaxMessage {
		return nil
	}
	err := q.openReduction()
	if err == nil {
		_, err = q.workplace.Scratch(rankorder.ForShares, roomOnDevice)
	}
	return err
}

// inOrder queues a reduction in order of rank. The device's context is current.
func (q *queue) inOrder(c *call.Call, t *task) error {
	if err := q.openReduction(); err != nil {
		return err
	}
	gather, err := q.workplace.prepare(&t.request, c.Kind, c.Bytes())
	if err != nil {
		return err
	}
	j := t.job(c)
	q.workplace.now = fold{grid.Job{Stamp: j.Stamp, Blocks: j.Blocks, Stream: j.Stream, Capture: j.Capture}, gather, &t.answer}
	return q.order.after(&t.entry, func() error { return q.reduction.Run(t.request, c.Kind, j.In, j.Out) })
}

// prepare loads and compiles what a request needs, before its first kernel is queued: loading may wait for that kernel,
// and the kernel for a rank that shares the GPU. gather is the algorithm of all-gathers, the same for all pieces.
func (p *workplace) prepare(r *request.Request, kind call.Kind, bytes int) (gather call.Algo, err error) {
	if _, err := p.kernel(r); err != nil {
		return gather, err
	}
	return p.prepareMoves(r, kind, bytes)
}

// prepareMoves is prepare for the collectives that move contributions and results.
func (p *workplace) prepareMoves(r *request.Request, kind call.Kind, bytes int) (gather call.Algo, err error) {
	if err := p.q.engine.Prepare(nil); err != nil {
		return gather, err
	}
	n := p.q.Life.Size
	gather, _ = choice.Threshold(call.AllGather, p.q.chooser.Topo, min(bytes, p.q.reduction.ScratchBytes)/n, call.Auto)
	first, then := p.q.reduction.Parts(kind, bytes)
	for _, k := range []call.Kind{first, then} {
		if k == 0 {
			continue
		}
		if _, err := p.q.program(r.Part(k, algorithm(k, gather))); err != nil {
			return gather, err
		}
	}
	return gather, nil
}

// algorithm is the algorithm of one of the collectives that a reduction is made of.
func algorithm(kind call.Kind, gather call.Algo) call.Algo {
	if kind == call.AllGather {
		return gather
	}
	return choice.Default(kind)
}

func (p *workplace) kernel(r *request.Request) (combiner.Kernel, error) {
	k, err := p.combiner.Kernel(r.Reducer)
	if err == nil {
		return k, nil
	}
	var wrong *kernels.InvalidError
	if errors.As(err, &wrong) {
		err = fmt.Errorf("%w: %w", call.ErrUnsupported, err)
	}
	return k, err
}

func (p *workplace) Scratch(which rankorder.Use, n int) (mem.Region, error) {
	at, err := p.rooms[which].AtLeast(max(n, roomOnDevice))
	if err != nil {
		return mem.Region{}, err
	}
	return mem.Device(p.q.Device.Number(), at, n), nil
}

func (p *workplace) Move(r *request.Request, kind call.Kind, in mem.Region, inL engine.Layout, out mem.Region,
	outL engine.Layout) error {
	program, err := p.q.program(r.Part(kind, algorithm(kind, p.now.gather)))
	if err != nil {
		return err
	}
	j := p.now.job
	j.Program, j.In, j.Out, j.InL, j.OutL = program, in, out, inL, outL
	p.now.job.Continues = true // the next Move
	return p.q.carry(&j, p.now.answer)
}

func (p *workplace) Combine(r *request.Request, dst, srcs mem.Region, contributions uint64, finish bool) error {
	return p.combine(p.now.job.Stream, r, dst, srcs, contributions, finish)
}

// combine is Combine on a stream.
func (p *workplace) combine(s gpu.Stream, r *request.Request, dst, srcs mem.Region, contributions uint64,
	finish bool) error {
	if dst.Len() == 0 {
		return nil
	}
	k, err := p.kernel(r)
	if err != nil {
		return err
	}
	p.src[0] = srcs
	p.args = combiner.Args{
		Dst: dst, Srcs: p.src[:], Rows: srcs.Len() / dst.Len(), Contributions: contributions, Finish: finish,
		Scalar: r.Scalar,
	}
	return k.Launch(s, &p.args)
}
