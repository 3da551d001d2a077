package gpucomm

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/life"
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

// A workplace is the rankorder.Workplace of a GPU, and the reduction there.
type workplace struct {
	device   *gpu.Device
	estate   *estate
	engine   *grid.Engine
	programs *programs
	chooser  *choice.Chooser
	size     int // ranks

	reduction *rankorder.Reduction // nil before open
	combiner  *combiner.Combiner
	rooms     [rankorder.Uses]*cuda.Growing
	args      combiner.Args // reused
	src       [1]mem.Region // reused
	move      grid.Job      // reused
	job       grid.Job      // while rankorder calls the workplace for a reduction: what is the same in all jobs
	gather    call.Algo     // the same: of all-gathers
	answer    choice.Answer // the same
	rank      int
}

// roomOnDevice is how many bytes of GPU memory hold shares: enough that launching the kernels
// of a piece takes little of the time.
const roomOnDevice = 8 << 20

func newWorkplace(d *gpu.Device, e *estate, engine *grid.Engine, programs *programs, chooser *choice.Chooser,
	l *life.Life) *workplace {
	return &workplace{device: d, estate: e, engine: engine, programs: programs, chooser: chooser, rank: l.Rank,
		size: l.Size}
}

// open makes what reductions in order of rank need, once.
func (p *workplace) open() error {
	if p.reduction != nil {
		return nil
	}
	ctx, err := p.device.Context()
	if err != nil {
		return err
	}
	if p.combiner, err = combiner.Borrow(p.device.Driver(), ctx); err != nil {
		return err
	}
	p.estate.keep(p.combiner.Close)
	for i := range p.rooms {
		p.rooms[i] = p.estate.memory()
	}
	p.reduction = rankorder.New(p.rank, p.size, p, choice.WholeOnGPU, roomOnDevice)
	return nil
}

// openEarly allocates the shares when the communicator is opened, if reductions in order of rank will need them: where
// direct kernels do not take data of any length. To allocate later may wait for kernels that wait for this rank.
func (p *workplace) openEarly() error {
	if !p.chooser.InOrder || p.size == 1 || p.engine.LongestDirect() == grid.MaxMessage {
		return nil
	}
	err := p.open()
	if err == nil {
		_, err = p.Scratch(rankorder.ForShares, roomOnDevice)
	}
	return err
}

// makeRoom allocates the scratch of uses.
func (p *workplace) makeRoom(uses ...rankorder.Use) error {
	for _, use := range uses {
		if _, err := p.Scratch(use, roomOnDevice); err != nil {
			return err
		}
	}
	return nil
}

// prepareMoves loads and compiles the collectives that move contributions and results. gather is the algorithm of
// all-gathers, the same for all pieces.
func (p *workplace) prepareMoves(r *request.Request, kind call.Kind, bytes int) (gather call.Algo, err error) {
	if err := p.engine.Prepare(nil); err != nil {
		return gather, err
	}
	n := p.size
	gather, _ = choice.Threshold(call.AllGather, p.chooser.Topo, min(bytes, p.reduction.ScratchBytes)/n, call.Auto)
	first, then := p.reduction.Parts(kind, bytes)
	for _, k := range []call.Kind{first, then} {
		if k == 0 {
			continue
		}
		if _, err := p.programs.find(r.Part(k, algorithm(k, gather))); err != nil {
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
	return mem.Device(p.device.Number(), at, n), nil
}

func (p *workplace) Move(r *request.Request, kind call.Kind, in mem.Region, inL engine.Layout, out mem.Region,
	outL engine.Layout) error {
	program, err := p.programs.find(r.Part(kind, algorithm(kind, p.gather)))
	if err != nil {
		return err
	}
	p.move = p.job
	j := &p.move
	j.Program, j.In, j.Out, j.InL, j.OutL = program, in, out, inL, outL
	p.job.Continues = true // the next Move
	return p.programs.run(&p.answer, j)
}

func (p *workplace) Combine(r *request.Request, dst, srcs mem.Region, contributions uint64, finish bool) error {
	return p.combine(p.job.Stream, r, dst, srcs, contributions, finish)
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
