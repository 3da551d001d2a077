package grid

import (
	"fmt"
	"math"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// A Norm is what follows the sum of a job's rows, in device memory; see kernels.Norm. Empty regions are not there,
// or not wanted.
type Norm struct {
	kernels.Norm
	Residual     mem.Region // as long as Out
	Bias, Weight mem.Region // a row each
	Normed       mem.Region // as long as Job.Out
	SmallOut     mem.Region // of Norm.Small, a byte for each element of Job.Out
	Scale        mem.Region // float32 of all rows of SmallOut; empty: each row has its own, in Scales
	Scales       mem.Region // a float32 for each row
	Sum          bool       // the sum is wanted, in Job.Out
}

// normArgs is NormArgs of kernels/cuda/norm.cu.
type normArgs struct {
	direct           directArgs
	in, residual     uint64
	bias, weight     uint64
	sum, normed      uint64
	small, scales    uint64
	scale            uint64
	row, rows        uint32
	share, steps     uint32
	units, room      uint32
	epsilon, columns uint32
	more, form       uint32
}

const (
	normLines   = 2                                // of a row that a thread has at once
	normThreads = 576                              // of a block: two lines of each group are a row of 16 KiB
	normShared  = 4 * normLines * normThreads * 16 // of the longest row
	normStatic  = 6 << 10                          // at most, besides
)

// NormRows is the most rows of a call that RunNorm takes, whatever their length.
const NormRows = 1 << 20

// A normShape is the grid of RunNorm.
type normShape struct{ blocks, threads, steps, each int } // each: units that a block has in a round

// normShape is the grid for units of rows of so many lines, of which two hops take twice the room. It has no blocks
// if a row does not fit into a mailbox.
func (e *Engine) normShape(j *Job, lines, units, hops int) (s normShape) {
	groups := min(normThreads, e.threads*normThreads/maxThreads&^31) / lineLanes
	s.steps = (lines + normLines*groups - 1) / (normLines * groups)
	groups = (lines + normLines*s.steps - 1) / (normLines * s.steps)
	s.threads = roundUp(groups*lineLanes, 32)
	slots := s.steps * normLines * s.threads / lineLanes
	area := e.mail.bytes / 2 / (e.ranks - 1) / hops / lineBytes
	s.blocks = min(j.most(e.mail.blocks), units, area/slots)
	if s.blocks > 0 {
		s.each = min((units+s.blocks-1)/s.blocks, area/(s.blocks*slots))
	}
	return s
}

// CanNorm reports whether RunNorm takes rows of a number of bytes. All ranks find the same.
func (e *Engine) CanNorm(row int) bool {
	return e.CanDirect() && row <= kernels.MaxNormRow && e.normShape(&Job{}, lines(row), 1, 2).blocks > 0
}

// PrepareNorm is Prepare for RunNorm.
func (e *Engine) PrepareNorm(r *kernels.Reducer) error {
	if !e.CanDirect() {
		return ErrNoDirect
	}
	_, _, err := e.module(r, "norm")
	return err
}

// RunNorm queues a kernel that sums the ranks' rows and finishes them, as RunDirect does a collective: with OneShot and
// TwoShot all rows of In on all ranks, with ReduceScatter a share of them on each. Of the job only In, Out, Reducer, which
// is a sum, Stamp, Blocks, Stream and Event are used. Residual, Weight and Bias are to be the same on all ranks. Outputs may
// be In or Residual.
func (e *Engine) RunNorm(j *Job, n *Norm, d Direct) error {
	if !e.CanNorm(n.Row * n.Type.Size()) {
		return ErrNoDirect
	}
	m, _, err := e.module(j.Reducer, "norm")
	if err != nil {
		return err
	}
	row := n.Row * n.Type.Size()
	rows, share, hops := j.In.Len()/row, 0, 1
	switch d {
	case OneShot:
	case TwoShot:
		share, hops = (rows+e.ranks-1)/e.ranks, 2
	case ReduceScatter:
		share = rows / e.ranks
	default:
		return fmt.Errorf("grid: rows cannot be finished by %v", d)
	}
	if err := e.checkNorm(j, n, d, row, rows); err != nil {
		return err
	}
	a := &e.frame.norm
	*a = normArgs{direct: directArgs{comm: e.collective(j), epochs: uint64(e.mail.epochs), hash: hashOf(j.Stamp)}}
	a.direct.two = mask(hops == 2, 1)
	e.setMailboxes(&a.direct)
	a.direct.lines = uint32(lines(row))
	a.row, a.rows, a.share = uint32(row), uint32(rows), uint32(share)
	a.epsilon, a.columns = math.Float32bits(n.Epsilon), math.Float32bits(float32(n.Row))
	a.more = mask(n.PlusOne, 1)
	switch n.Small {
	case kernels.Float8E4M3:
		a.form = 1
	case kernels.Int8:
		a.form = 2
	}
	first := 0 // row of the outputs that lies at their beginning
	if d == ReduceScatter {
		first = int(e.rank) * share
	}
	at := func(r mem.Region, bytes int) uint64 { // of the rows
		if r.Len() == 0 {
			return 0
		}
		return uint64(r.Ptr()) - uint64(first*bytes)
	}
	a.in = uint64(j.In.Ptr())
	a.residual, a.normed, a.small, a.scales = at(n.Residual, row), at(n.Normed, row), at(n.SmallOut, n.Row), at(n.Scales, 4)
	if n.Sum {
		a.sum = at(j.Out, row)
	}
	a.bias, a.weight, a.scale = address(n.Bias), address(n.Weight), address(n.Scale)
	units := max(1, rows) // without rows the ranks still meet
	if share > 0 {
		units = share
	}
	s := e.normShape(j, int(a.direct.lines), units, hops)
	a.steps, a.units, a.room = uint32(s.steps), uint32(units), uint32(s.blocks*s.each)
	e.frame.launch = cuda.Launch{
		Grid: cuda.Dim3{X: uint32(s.blocks)}, Block: cuda.Dim3{X: uint32(s.threads)}, Stream: j.Stream,
		Shared: s.steps * normLines * s.threads * 16,
	}
	return e.queue(m.run, cuda.ArgsOf(a), j.Event)
}

// roomForRows lets a norm kernel have shared memory for the longest row.
func (e *Engine) roomForRows(f cuda.Function) error {
	most, err := e.driver.DeviceGetAttribute(cuda.AttrMaxSharedPerBlockOptin, e.dev)
	if err != nil {
		return err
	}
	return e.driver.FuncSetAttribute(f, cuda.FuncMaxDynamicShared, min(normShared, most-normStatic))
}

func address(r mem.Region) uint64 {
	if r.Len() == 0 {
		return 0
	}
	return uint64(r.Ptr())
}

// checkNorm looks at the memory, as Job.check does.
func (e *Engine) checkNorm(j *Job, n *Norm, d Direct, row, rows int) error {
	if err := n.Check(); err != nil {
		return fmt.Errorf("grid: %w", err)
	}
	mine := rows
	if d == ReduceScatter {
		mine = rows / e.ranks
	}
	if rows > NormRows || j.In.Len()%row != 0 || d == ReduceScatter && rows%e.ranks != 0 {
		return &ArgumentError{"in", int(e.dev), fmt.Sprintf("%d bytes are no whole number of rows of %d bytes for each rank, or more than %d", j.In.Len(), row, NormRows)}
	}
	if rows > 0 && (n.Small != 0) != (n.SmallOut.Len() > 0) {
		return &ArgumentError{"small", int(e.dev), "has no type, or its type has no memory"}
	}
	for _, x := range []struct {
		name        string
		r           mem.Region
		bytes, unit int
		needed      bool
	}{
		{"in", j.In, rows * row, 8, rows > 0}, {"out", j.Out, mine * row, 8, n.Sum && rows > 0}, {"residual", n.Residual, mine * row, 8, false},
		{"bias", n.Bias, row, 8, false}, {"weight", n.Weight, row, 8, false}, {"normed", n.Normed, mine * row, 8, false},
		{"small", n.SmallOut, mine * n.Row, 4, false}, {"scale", n.Scale, 4, 4, false}, {"scales", n.Scales, 4 * mine, 4, n.SmallOut.Len() > 0 && n.Scale.Len() == 0},
	} {
		if x.r.Len() == 0 && !x.needed {
			continue
		}
		if reason := outside(x.r, x.bytes, x.unit); reason != "" {
			return &ArgumentError{x.name, int(e.dev), reason}
		}
	}
	return nil
}
