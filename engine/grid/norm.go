package grid

import (
	"fmt"
	"math"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// A Norm is the work after the sum of a job's rows, see kernels.Norm, and its device memory. An empty region is an
// input that is not there, or an output that is not wanted.
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
	scale, words     uint64
	row, rows        uint32
	share, steps     uint32
	units, room      uint32
	epsilon, columns uint32
	more, form       uint32
	few              uint32
	parts, part      uint32
	team             uint32
}

const (
	normLines   = 2                                // of a row that a thread has at once
	normThreads = 576                              // of a block: two lines of each group are a row of 16 KiB
	normShared  = 4 * normLines * normThreads * 16 // of the longest row
	normStatic  = 6 << 10                          // static, at most
	normWords   = 2 * 8 * MaxBlocks * (normThreads/lineLanes + normThreads/32)
)

// NormRows is the most rows of a call that RunNorm takes, whatever their length.
const NormRows = 1 << 20

// A normShape is the grid of RunNorm.
type normShape struct {
	blocks, threads, steps int
	each                   int // units that a block has in a round
	few                    int // lines of a thread, where a block has one row or a part of one; 0: several rows
	parts, part            int // where few is not 0: parts of a row, of a block each; lines of a part
}

// rowGroups is the most groups of threads, of a line each, that a block has.
func (e *Engine) rowGroups() int {
	return min(normThreads, e.threads*normThreads/maxThreads&^31) / lineLanes
}

// rowShape is the shape of blocks for whole rows of so many lines.
func (e *Engine) rowShape(lines int) normShape {
	groups := e.rowGroups()
	steps := (lines + normLines*groups - 1) / (normLines * groups)
	groups = (lines + normLines*steps - 1) / (normLines * steps)
	return normShape{threads: roundUp(groups*lineLanes, 32), steps: steps, parts: 1}
}

// normShape is the grid for units: rows of so many lines, or with shares one row of each rank. Two hops take twice the
// space of a mailbox. It has no blocks if a row does not fit there.
func (e *Engine) normShape(j *Job, lines, units, hops int) normShape {
	most, area := j.most(e.mail.blocks), e.mail.bytes/2/(e.ranks-1)/hops/lineBytes
	if hops == 1 && units <= most {
		parts := min(most/units, (lines+e.mail.part-1)/e.mail.part)
		part := (lines + parts - 1) / parts
		parts = (lines + part - 1) / part
		s := normShape{steps: 1, each: 1, parts: parts, part: part, blocks: units * parts}
		if groups := e.rowGroups(); part <= groups {
			s.few = 1
		} else if parts == 1 && part <= 2*groups {
			s.few = 2
		}
		if s.few > 0 {
			s.threads = roundUp((part+s.few-1)/s.few*lineLanes, 32)
			if s.blocks*s.few*s.threads/lineLanes <= area {
				return s
			}
		}
	}
	s := e.rowShape(lines)
	s.blocks = min(most, units, area/s.slots())
	if s.blocks > 0 {
		s.each = min((units+s.blocks-1)/s.blocks, area/(s.blocks*s.slots()))
	}
	return s
}

// slots is how many lines of a mailbox a block takes for a row.
func (s *normShape) slots() int { return s.steps * normLines * s.threads / lineLanes }

// CanNorm reports whether RunNorm takes rows of a number of bytes. All ranks find the same.
func (e *Engine) CanNorm(row int) bool {
	return e.CanDirect() && row <= kernels.MaxNormRow && e.normShape(&Job{}, lines(row), 1, 2).blocks > 0
}

// PrepareNorm is Prepare for RunNorm, PrepareRows for RunRows.
func (e *Engine) PrepareNorm(r *kernels.Reducer) error { return e.prepared(r, "norm") }
func (e *Engine) PrepareRows(r *kernels.Reducer) error { return e.prepared(r, "rows") }

func (e *Engine) prepared(r *kernels.Reducer, source string) error {
	_, _, err := e.module(r, source)
	return err
}

// RunNorm queues a kernel that sums the ranks' rows and finishes them, as RunDirect does a collective: with OneShot and
// TwoShot all rows of In on all ranks, with ReduceScatter a share of them on each. Of the job only In, Out, Reducer,
// which is a sum, Stamp, Continues, Blocks, Stream and Event are used. Weight and Bias are the same on all ranks, and
// so is Residual but with ReduceScatter, where it is the share's. Outputs may be In or Residual.
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
	mine, first := rows, 0 // first: row of the outputs that lies at their beginning
	if d == ReduceScatter {
		mine, first = share, int(e.rank)*share
	}
	if d == ReduceScatter && rows%e.ranks != 0 {
		reason := fmt.Sprintf("%d rows are no whole number for each of %d ranks", rows, e.ranks)
		return &ArgumentError{"in", int(e.dev), reason}
	}
	a, err := e.normArgs(j, n, rows, mine, first)
	if err != nil {
		return err
	}
	a.direct.comm, a.direct.epochs, a.direct.hash = e.collective(j), uint64(e.mail.epochs), hashOf(j.Stamp)
	a.direct.two, a.direct.from = mask(hops == 2, 1), e.all()
	e.setMailboxes(&a.direct)
	a.share = uint32(share)
	units := max(1, rows) // without rows the ranks still meet
	if share > 0 {
		units = share
	}
	s := e.normShape(j, int(a.direct.lines), units, hops)
	a.units, a.room, a.words = uint32(units), uint32(s.blocks/s.parts*s.each), uint64(e.mail.words)
	return e.launchRows(m.run, s, j)
}

// RunRows queues a kernel that finishes rows whose contributions lie in this GPU's memory: In holds a number of
// them, one after the other, each of all rows. No other rank takes part. Outputs may be Residual or the
// first contribution.
func (e *Engine) RunRows(j *Job, n *Norm, contributions int) error {
	m, _, err := e.module(j.Reducer, "rows")
	if err != nil {
		return err
	}
	row := n.Row * n.Type.Size()
	rows := j.In.Len() / row / contributions
	a, err := e.normArgs(j, n, rows*contributions, rows, 0)
	if err != nil || rows == 0 {
		return err
	}
	a.rows, a.share = uint32(rows), uint32(contributions)
	s := e.rowShape(int(a.direct.lines))
	s.blocks = min(j.most(e.mail.blocks), rows)
	return e.launchRows(m.rows, s, j)
}

// launchRows queues a kernel with the arguments in the frame.
func (e *Engine) launchRows(f cuda.Function, s normShape, j *Job) error {
	a := &e.frame.norm
	a.steps, a.few, a.parts, a.part = uint32(s.steps), uint32(s.few), uint32(s.parts), uint32(s.part)
	a.team = uint32((1<<16 + s.parts - 1) / s.parts)
	e.frame.launch = cuda.Launch{
		Grid: cuda.Dim3{X: uint32(s.blocks)}, Block: cuda.Dim3{X: uint32(s.threads)}, Stream: j.Stream,
		Shared: s.steps * normLines * s.threads * 16,
	}
	return e.queue(f, cuda.ArgsOf(a), j.Event)
}

// normArgs fills in the arguments that all norm kernels have. The job's In has rows, each output has mine, of which row
// first is at the beginning.
func (e *Engine) normArgs(j *Job, n *Norm, rows, mine, first int) (*normArgs, error) {
	row := n.Row * n.Type.Size()
	if err := e.checkNorm(j, n, row, rows, mine); err != nil {
		return nil, err
	}
	at := func(r mem.Region, bytes int) uint64 { // of the rows
		if r.Len() == 0 {
			return 0
		}
		return uint64(r.Ptr()) - uint64(first*bytes)
	}
	a := &e.frame.norm
	*a = normArgs{
		in: uint64(j.In.Ptr()), residual: at(n.Residual, row), bias: address(n.Bias), weight: address(n.Weight),
		normed: at(n.Normed, row), small: at(n.SmallOut, n.Row), scales: at(n.Scales, 4), scale: address(n.Scale),
		row: uint32(row), rows: uint32(rows), epsilon: math.Float32bits(n.Epsilon), columns: math.Float32bits(float32(n.Row)),
		more: mask(n.PlusOne, 1),
	}
	a.direct.lines = uint32(lines(row))
	if n.Sum {
		a.sum = at(j.Out, row)
	}
	switch n.Small {
	case kernels.Float8E4M3:
		a.form = 1
	case kernels.Int8:
		a.form = 2
	}
	return a, nil
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
func (e *Engine) checkNorm(j *Job, n *Norm, row, rows, mine int) error {
	if err := n.Check(); err != nil {
		return fmt.Errorf("grid: %w", err)
	}
	if rows > NormRows || j.In.Len() != rows*row {
		reason := fmt.Sprintf("%d bytes are no whole number of rows of %d bytes, or more than %d", j.In.Len(), row, NormRows)
		return &ArgumentError{"in", int(e.dev), reason}
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
		{"in", j.In, rows * row, 8, rows > 0}, {"out", j.Out, mine * row, 8, n.Sum && rows > 0},
		{"residual", n.Residual, mine * row, 8, false},
		{"bias", n.Bias, row, 8, false}, {"weight", n.Weight, row, 8, false}, {"normed", n.Normed, mine * row, 8, false},
		{"small", n.SmallOut, mine * n.Row, 4, false}, {"scale", n.Scale, 4, 4, false},
		{"scales", n.Scales, 4 * mine, 4, n.SmallOut.Len() > 0 && n.Scale.Len() == 0},
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
