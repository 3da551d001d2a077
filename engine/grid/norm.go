package grid

import (
	"fmt"
	"math"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/collective"
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

// normArgs is NormArgs of kernels/cuda/norm.cu. Addresses are 0 for inputs that are not there and outputs that are not
// wanted. Of direct only what is about mailboxes and epochs is looked at, and lines, of a row, and two.
type normArgs struct {
	direct           directArgs
	in, residual     uint64 // rows
	bias, weight     uint64 // a row each
	sum, normed      uint64 // rows that come out
	small, scales    uint64 // the normed rows in 8 bits; a float32 for each, where it has a scale of its own
	scale            uint64 // of all rows
	words            uint64 // what the parts of rows tell each other, for even and odd epochs
	row, rows        uint32 // bytes of a row; how many there are
	share            uint32 // rows that a rank finishes, 0: all; of RunRows the contributions
	steps            uint32 // in which a group of threads has normLines lines
	units, room      uint32 // a unit is a row, or a row of each rank's share; how many a round has
	epsilon, columns uint32 // bits of a float32 each
	more             uint32 // 1: the factor is 1 + weight
	form             uint32 // of small: 1 E4M3, 2 int8
	few              uint32 // see normShape
	parts, part      uint32
	team             uint32 // 1<<16 / parts, rounded up
}

const (
	normLines  = 2                                // of a row that a thread has at once
	normShared = 4 * normLines * normThreads * 16 // of the longest row
	normStatic = 6 << 10                          // static, at most
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

// norms sum rows and finish them.
type norms struct {
	*directKernels
	part int // lines that a part of a row has, where there are blocks for so many
	args normArgs
}

func (k *norms) open(*Options) error {
	most, err := k.driver.DeviceGetAttribute(cuda.AttrMaxSharedPerBlockOptin, k.dev)
	k.part, k.dynamic["norm"] = collective.NormPart, min(normShared, most-normStatic)
	return err
}

// rowGroups is the most groups of threads, of a line each, that a block has.
func (k *norms) rowGroups() int {
	return min(normThreads, k.threads*normThreads/maxThreads&^31) / lineLanes
}

// rowShape is the shape of blocks for whole rows of so many lines.
func (k *norms) rowShape(lines int) normShape {
	groups := k.rowGroups()
	steps := (lines + normLines*groups - 1) / (normLines * groups)
	groups = (lines + normLines*steps - 1) / (normLines * steps)
	return normShape{threads: roundUp(groups*lineLanes, 32), steps: steps, parts: 1}
}

// normShape is the grid for units: rows of so many lines, or with shares one row of each rank. Two hops take twice the
// space of a mailbox. It has no blocks if a row does not fit there.
func (k *norms) normShape(j *Job, lines, units, hops int) normShape {
	most, area := j.most(k.directBlocks), k.mailBytes/2/(k.ranks-1)/hops/lineBytes
	if hops == 1 && units <= most {
		parts := min(most/units, (lines+k.part-1)/k.part)
		part := (lines + parts - 1) / parts
		parts = (lines + part - 1) / part
		s := normShape{steps: 1, each: 1, parts: parts, part: part, blocks: units * parts}
		if groups := k.rowGroups(); part <= groups {
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
	s := k.rowShape(lines)
	s.blocks = min(most, units, area/s.slots())
	if s.blocks > 0 {
		s.each = min((units+s.blocks-1)/s.blocks, area/(s.blocks*s.slots()))
	}
	return s
}

// slots is how many lines of a mailbox a block takes for a row.
func (s *normShape) slots() int { return s.steps * normLines * s.threads / lineLanes }

// CanNorm reports whether RunNorm takes rows of a number of bytes. All ranks find the same.
func (k *norms) CanNorm(row int) bool {
	return k.CanDirect() && row <= kernels.MaxNormRow && k.normShape(&Job{}, lines(row), 1, 2).blocks > 0
}

// PrepareNorm is Prepare for RunNorm, PrepareRows for RunRows.
func (k *norms) PrepareNorm(r *kernels.Reducer) error { return k.prepared(r, "norm") }
func (k *norms) PrepareRows(r *kernels.Reducer) error { return k.prepared(r, "rows") }

// RunNorm queues a kernel that sums the ranks' rows and finishes them, as RunDirect does a collective: with OneShot and
// TwoShot all rows of In on all ranks, with ReduceScatter a share of them on each. Of the job only In, Out, Reducer,
// which is a sum, Stamp, Continues, Blocks, Stream and Event are used. Weight and Bias are the same on all ranks, and
// so is Residual but with ReduceScatter, where it is the share's. Outputs may be In or Residual.
func (k *norms) RunNorm(j *Job, n *Norm, d Direct) error {
	if !k.CanNorm(n.Row * n.Type.Size()) {
		return ErrNoDirect
	}
	m, _, err := k.module(j.Reducer, "norm")
	if err != nil {
		return err
	}
	row := n.Row * n.Type.Size()
	rows, share, hops := j.In.Len()/row, 0, 1
	switch d {
	case OneShot:
	case TwoShot:
		share, hops = (rows+k.ranks-1)/k.ranks, 2
	case ReduceScatter:
		share = rows / k.ranks
	default:
		return fmt.Errorf("grid: rows cannot be finished by %v", d)
	}
	mine, first := rows, 0 // first: row of the outputs that lies at their beginning
	if d == ReduceScatter {
		mine, first = share, int(k.rank)*share
	}
	if d == ReduceScatter && rows%k.ranks != 0 {
		reason := fmt.Sprintf("%d rows are no whole number for each of %d ranks", rows, k.ranks)
		return &ArgumentError{"in", int(k.dev), reason}
	}
	a, err := k.normArgs(j, n, rows, mine, first)
	if err != nil {
		return err
	}
	a.direct.comm, a.direct.epochs, a.direct.hash = k.collective(j), uint64(k.epochs), hashOf(j.Stamp)
	a.direct.two, a.direct.from = only[uint32](hops == 2, 1), k.all()
	a.direct.setMailboxes(&k.mailboxes)
	a.share = uint32(share)
	units := max(1, rows) // without rows the ranks still meet
	if share > 0 {
		units = share
	}
	s := k.normShape(j, int(a.direct.lines), units, hops)
	a.units, a.room, a.words = uint32(units), uint32(s.blocks/s.parts*s.each), uint64(k.words)
	return k.launchRows(m.run, s, j)
}

// RunRows queues a kernel that finishes rows whose contributions lie in this GPU's memory: In holds a number of
// them, one after the other, each of all rows. No other rank takes part. Outputs may be Residual or the
// first contribution.
func (k *norms) RunRows(j *Job, n *Norm, contributions int) error {
	m, _, err := k.module(j.Reducer, "rows")
	if err != nil {
		return err
	}
	row := n.Row * n.Type.Size()
	rows := j.In.Len() / row / contributions
	a, err := k.normArgs(j, n, rows*contributions, rows, 0)
	if err != nil || rows == 0 {
		return err
	}
	a.rows, a.share = uint32(rows), uint32(contributions)
	s := k.rowShape(int(a.direct.lines))
	s.blocks = min(j.most(k.directBlocks), rows)
	return k.launchRows(m.rows, s, j)
}

// launchRows queues a kernel with the arguments in the frame.
func (k *norms) launchRows(f cuda.Function, s normShape, j *Job) error {
	a := &k.args
	a.steps, a.few, a.parts, a.part = uint32(s.steps), uint32(s.few), uint32(s.parts), uint32(s.part)
	a.team = uint32((1<<16 + s.parts - 1) / s.parts)
	k.shape(s.blocks, s.threads, s.steps*normLines*s.threads*16, j.Stream)
	return k.queue(f, cuda.ArgsOf(a), j.Event)
}

// normArgs fills in the arguments that all norm kernels have. The job's In has rows, each output has mine, of which row
// first is at the beginning.
func (k *norms) normArgs(j *Job, n *Norm, rows, mine, first int) (*normArgs, error) {
	row := n.Row * n.Type.Size()
	if err := k.checkNorm(j, n, row, rows, mine); err != nil {
		return nil, err
	}
	a := &k.args
	*a = normArgs{
		in: uint64(j.In.Ptr()), residual: before(n.Residual, first*row), bias: before(n.Bias, 0), weight: before(n.Weight, 0),
		normed: before(n.Normed, first*row), small: before(n.SmallOut, first*n.Row), scales: before(n.Scales, first*4),
		scale: before(n.Scale, 0),
		row:   uint32(row), rows: uint32(rows), epsilon: math.Float32bits(n.Epsilon), columns: math.Float32bits(float32(n.Row)),
		more: only[uint32](n.PlusOne, 1),
	}
	a.direct.lines = uint32(lines(row))
	if n.Sum {
		a.sum = before(j.Out, first*row)
	}
	switch n.Small {
	case kernels.Float8E4M3:
		a.form = 1
	case kernels.Int8:
		a.form = 2
	}
	return a, nil
}

// before returns the address that lies so many bytes before a region, 0 for an empty one.
func before(r mem.Region, bytes int) uint64 {
	if r.Len() == 0 {
		return 0
	}
	return uint64(r.Ptr()) - uint64(bytes)
}

// checkNorm looks at the memory, as check does.
func (k *norms) checkNorm(j *Job, n *Norm, row, rows, mine int) error {
	if err := n.Check(); err != nil {
		return fmt.Errorf("grid: %w", err)
	}
	if rows > NormRows || j.In.Len() != rows*row {
		reason := fmt.Sprintf("%d bytes are no whole number of rows of %d bytes, or more than %d", j.In.Len(), row, NormRows)
		return &ArgumentError{"in", int(k.dev), reason}
	}
	if rows > 0 && (n.Small != 0) != (n.SmallOut.Len() > 0) {
		return &ArgumentError{"small", int(k.dev), "has no type, or its type has no memory"}
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
			return &ArgumentError{x.name, int(k.dev), reason}
		}
	}
	return nil
}
