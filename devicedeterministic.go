package ringo

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/kernels"
	combiner "github.com/ringo-go/ringo/kernels/device"
	"github.com/ringo-go/ringo/mem"
)

// pick chooses the algorithm of a call.
func (d *device) pick(call *Call, registered bool) algo {
	scales := call.Kind.Reduces() && call.Op.Kind == kernels.KindPreMulSum
	return d.orderly(call.Kind, call.bytes(), registered, d.net.cfg.byRank(call, d.net.size), scales)
}

// orderly is choose for a collective that may have to be combined in order of rank,
// which direct kernels and those in windows do, and schedules do not.
//
// Such kernels take what ranks contribute as it is. The scales of a PreMulSum may
// differ, so there each rank scales its own first; see scaleFirst.
func (p *planner) orderly(kind Kind, bytes int, registered, byRank, scales bool) algo {
	small := !scales || bytes*kind.shares(p.topo.ranks) <= scaleFirst
	registered = registered && !scales
	a := p.choose(kind, bytes, registered)
	_, direct := p.kernel(kind, a, bytes)
	if direct && !small {
		a, direct = algoSteps, false
	}
	if !byRank || a == algoWindow {
		return a
	}
	shot := algoDirect
	if kind == KindAllReduce {
		shot = algoTwoShot
	}
	_, fits := p.kernel(kind, shot, bytes)
	switch {
	case p.forced == algoSteps:
		return algoByRank
	case !direct && p.serves(kind, algoWindow, bytes, registered):
		return algoWindow
	case p.reducesInShares(kind, bytes):
		return algoTwoShot
	case direct:
		return a
	case fits && small:
		return shot
	}
	return algoByRank
}

// scaleFirst is how much a rank scales at most before a direct kernel runs, in
// bytes of In, since it takes as much memory. What is larger is carried out by a
// schedule, which scales on the way, or in pieces.
const scaleFirst = 16 << 20

// A devicePlace is the workplace on a GPU. It queues on the stream of a call.
type devicePlace struct {
	c        *Comm
	d        *device
	combiner *combiner.Combiner
	stream   gpu.Stream
	gather   algo // of all-gathers
	rooms    [allRooms]mem.Region
	owned    []mem.Region
	args     combiner.Args
	src      [1]mem.Region
}

// roomOnDevice is how much memory of a GPU is used for shares, enough for the
// launches of a piece not to count.
const roomOnDevice = 8 << 20

// wholeOnDevice is the fold's whole: a launch less is worth more than a hop.
const wholeOnDevice = 64 << 10

// openFold makes what reductions in order of rank need on the device, if it is not
// there yet.
func (d *device) openFold(c *Comm) error {
	if d.fold != nil {
		return nil
	}
	ctx, err := d.gpu.Context()
	if err != nil {
		return err
	}
	d.workplace = &devicePlace{c: c, d: d}
	if d.workplace.combiner, err = combiner.Borrow(d.gpu.Driver(), ctx); err != nil {
		return err
	}
	d.fold = newFold(c, d.workplace, wholeOnDevice, roomOnDevice)
	return nil
}

// prepareFold does so when the communicator is opened, if no direct kernels will
// serve: memory that is asked for later may wait for kernels that wait for us.
func (d *device) prepareFold(c *Comm) error {
	if c.cfg.Deterministic == "" || c.size == 1 || d.engine.CanDirect() {
		return nil
	}
	err := d.openFold(c)
	if err == nil {
		_, err = d.workplace.room(sharesRoom, roomOnDevice)
	}
	return err
}

// queueByRank queues a request that is carried out in parts, with the device's
// context current.
func (d *device) queueByRank(c *Comm, call *Call, r *request) error {
	if err := d.openFold(c); err != nil {
		return err
	}
	p := d.workplace
	if err := p.prepare(r, call.Kind, call.bytes()); err != nil {
		return err
	}
	p.stream = call.Stream
	return d.inOrder(call.Stream, func() error {
		return d.fold.run(*r, call.Kind, call.In.Slice(0, r.in), call.Out.Slice(0, r.out))
	})
}

// scaleIn has the job of a PreMulSum sum what the ranks have scaled.
func (d *device) scaleIn(c *Comm, call *Call, r *request, j *grid.Job) error {
	if err := d.openFold(c); err != nil {
		return err
	}
	var err error
	if j.Reducer, err = kernels.NewReducer(call.Type, kernels.Sum, c.size); err != nil || j.In.Len() == 0 {
		return err
	}
	if err := d.engine.PrepareDirect(j.Reducer); err != nil { // see devicePlace.prepare
		return err
	}
	scaled, err := d.scratch(j.In.Len())
	if err != nil {
		return err
	}
	d.workplace.stream = call.Stream
	err = d.workplace.combine(r, scaled, j.In, 1, false)
	j.In, j.Scalar = scaled, 0
	return err
}

// prepare loads and compiles what a request needs, before any rank hears of it: to
// load behind a kernel may wait for that, and it for a rank that shares the GPU.
func (p *devicePlace) prepare(r *request, kind Kind, bytes int) error {
	if _, err := p.kernel(r); err != nil {
		return err
	}
	if err := p.d.engine.Prepare(nil); err != nil {
		return err
	}
	n := p.c.size
	p.gather, _ = choosePlan(KindAllGather, p.d.topo, min(bytes, p.d.fold.roomFor)/n, algoAuto)
	first, then := p.d.fold.parts(kind, bytes)
	for _, k := range []Kind{first, then} {
		if k == kinds {
			continue
		}
		if _, err := p.d.program(p.c, r.part(k, p.algorithm(k))); err != nil {
			return err
		}
	}
	return nil
}

// algorithm is that of a part: the same for all pieces.
func (p *devicePlace) algorithm(kind Kind) algo {
	if kind == KindAllGather {
		return p.gather
	}
	return book[kind][0].algo
}

func (p *devicePlace) kernel(r *request) (combiner.Kernel, error) {
	k, err := p.combiner.Kernel(r.reducer)
	if err == nil {
		return k, nil
	}
	var wrong *kernels.InvalidError
	if errors.As(err, &wrong) {
		err = fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return k, err
}

func (p *devicePlace) room(which rooms, n int) (Region, error) {
	have := &p.rooms[which]
	if have.Len() >= n {
		return have.Slice(0, n), nil
	}
	r, err := p.d.gpu.Alloc(max(n, roomOnDevice))
	if err != nil {
		return r, err
	}
	p.owned, *have = append(p.owned, r), r // what is smaller stays: graphs may hold it
	return r.Slice(0, n), nil
}

func (p *devicePlace) move(r *request, kind Kind, in Region, inL engine.Layout, out Region, outL engine.Layout) error {
	program, err := p.d.program(p.c, r.part(kind, p.algorithm(kind)))
	if err != nil {
		return err
	}
	p.d.job = grid.Job{Program: program, In: in, Out: out, InL: inL, OutL: outL, Stamp: r.stamp, Stream: p.stream}
	return p.d.engine.Run(&p.d.job)
}

func (p *devicePlace) combine(r *request, dst, srcs Region, contributions uint64, finish bool) error {
	if dst.Len() == 0 {
		return nil
	}
	k, err := p.kernel(r)
	if err != nil {
		return err
	}
	p.src[0] = srcs
	p.args = combiner.Args{
		Dst: dst, Srcs: p.src[:], Rows: srcs.Len() / dst.Len(), Contributions: contributions, Finish: finish, Scalar: r.scalar,
	}
	return k.Launch(p.stream, &p.args)
}

func (p *devicePlace) close() error {
	var errs []error
	if p.combiner != nil {
		errs = append(errs, p.combiner.Close())
	}
	for _, r := range p.owned {
		errs = append(errs, p.d.gpu.Free(r))
	}
	return errors.Join(errs...)
}
