package gpucomm

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/choice"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	combiner "github.com/ringo-go/ringo/kernels/device"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/rankorder"
	"github.com/ringo-go/ringo/request"
)

// A workplace is the rankorder.Workplace of a GPU. What it does is queued on the stream of
// the current call.
type workplace struct {
	g        *Comm
	combiner *combiner.Combiner
	stream   gpu.Stream
	gather   call.Algo // of the current call's all-gathers
	moved    bool      // the current call has queued a kernel of the communicator
	rooms    [rankorder.AllRooms]*cuda.Growing
	args     combiner.Args
	src      [1]mem.Region
}

// roomOnDevice is how many bytes of GPU memory hold shares: enough that launching the kernels
// of a piece takes little of the time.
const roomOnDevice = 8 << 20

// Reduction is what carries out reductions in order of rank on this GPU.
func (g *Comm) Reduction() (*rankorder.Reduction, error) {
	err := g.openReduction()
	return g.reduction, err
}

// openReduction makes what reductions in order of rank need, once.
func (g *Comm) openReduction() error {
	if g.reduction != nil {
		return nil
	}
	ctx, err := g.Device.Context()
	if err != nil {
		return err
	}
	p := &workplace{g: g}
	if p.combiner, err = combiner.Borrow(g.Device.Driver(), ctx); err != nil {
		return err
	}
	g.estate.keep(p.combiner.Close)
	for i := range p.rooms {
		p.rooms[i] = g.estate.memory()
	}
	g.workplace = p
	g.reduction = rankorder.New(g.Life.Rank, g.Life.Size, g.workplace, choice.WholeOnGPU, roomOnDevice)
	return nil
}

// prepareReduction allocates the shares when the communicator is opened, if reductions in
// order of rank will need them: there are no direct kernels for data of any length. To allocate later may wait for
// kernels that wait for this rank.
func (g *Comm) prepareReduction() error {
	if !g.chooser.InOrder || g.Life.Size == 1 || g.engine.LongestDirect() == grid.MaxMessage {
		return nil
	}
	err := g.openReduction()
	if err == nil {
		_, err = g.workplace.Room(rankorder.SharesRoom, roomOnDevice)
	}
	return err
}

// inOrder queues a reduction in order of rank. The device's context is current.
func (g *Comm) inOrder(c *call.Call, r *request.Request) error {
	if err := g.openReduction(); err != nil {
		return err
	}
	p := g.workplace
	if err := p.prepare(r, c.Kind, c.Bytes()); err != nil {
		return err
	}
	p.stream, p.moved = c.Stream, false
	return g.after(c.Stream, func() error {
		return g.reduction.Run(*r, c.Kind, c.In.Slice(0, r.In), c.Out.Slice(0, r.Out))
	})
}

// scaleIn queues the scaling of In to scratch memory, for a kernel that only sums: the job
// becomes a Sum of what was scaled.
func (g *Comm) scaleIn(c *call.Call, r *request.Request, j *grid.Job) error {
	if err := g.openReduction(); err != nil {
		return err
	}
	var err error
	if j.Reducer, err = kernels.NewReducer(c.Type, kernels.Sum, g.Life.Size); err != nil || j.In.Len() == 0 {
		return err
	}
	if err := g.engine.PrepareDirect(j.Reducer); err != nil { // see workplace.prepare
		return err
	}
	scaled, err := g.scratch(j.In.Len())
	if err != nil {
		return err
	}
	g.workplace.stream = c.Stream
	err = g.workplace.Combine(r, scaled, j.In, 1, false)
	j.In, j.Scalar = scaled, 0
	return err
}

// prepare loads and compiles what a request needs, before its first kernel is queued:
// loading may wait for that kernel, and the kernel for a rank that shares the GPU.
func (p *workplace) prepare(r *request.Request, kind call.Kind, bytes int) error {
	if _, err := p.kernel(r); err != nil {
		return err
	}
	if err := p.g.engine.Prepare(nil); err != nil {
		return err
	}
	n := p.g.Life.Size
	p.gather, _ = choice.Threshold(call.AllGather, p.g.chooser.Topo, min(bytes, p.g.reduction.RoomFor)/n, call.Auto)
	first, then := p.g.reduction.Parts(kind, bytes)
	for _, k := range []call.Kind{first, then} {
		if k == 0 {
			continue
		}
		if _, err := p.g.program(r.Part(k, p.algorithm(k))); err != nil {
			return err
		}
	}
	return nil
}

// algorithm is that of a part of the current call, the same for all pieces.
func (p *workplace) algorithm(kind call.Kind) call.Algo {
	if kind == call.AllGather {
		return p.gather
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

func (p *workplace) Room(which rankorder.Rooms, n int) (mem.Region, error) {
	at, err := p.rooms[which].Room(max(n, roomOnDevice))
	if err != nil {
		return mem.Region{}, err
	}
	return mem.Device(p.g.Device.Number(), at, n), nil
}

func (p *workplace) Move(r *request.Request, kind call.Kind, in mem.Region, inL engine.Layout, out mem.Region, outL engine.Layout) error {
	program, err := p.g.program(r.Part(kind, p.algorithm(kind)))
	if err != nil {
		return err
	}
	p.g.job = grid.Job{Program: program, In: in, Out: out, InL: inL, OutL: outL, Stamp: r.Stamp, Continues: p.moved, Blocks: p.g.blocks, Stream: p.stream, Capture: p.g.capture.ID}
	p.moved = true
	return p.g.engine.Run(&p.g.job)
}

func (p *workplace) Combine(r *request.Request, dst, srcs mem.Region, contributions uint64, finish bool) error {
	if dst.Len() == 0 {
		return nil
	}
	k, err := p.kernel(r)
	if err != nil {
		return err
	}
	p.src[0] = srcs
	p.args = combiner.Args{
		Dst: dst, Srcs: p.src[:], Rows: srcs.Len() / dst.Len(), Contributions: contributions, Finish: finish, Scalar: r.Scalar,
	}
	return k.Launch(p.stream, &p.args)
}
