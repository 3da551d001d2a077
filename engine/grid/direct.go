package grid

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/sched"
)

// A Direct is a collective that a direct kernel carries out: all ranks write to
// each other's mailboxes at once. Reductions combine in order of rank, narrow
// floats in float32 rounded once, as kernels.Reducer.CombineAll does.
type Direct uint8

const (
	OneShot Direct = iota // all-reduce: everybody sends everything to everybody
	TwoShot               // all-reduce: reduce-scatter, then all-gather
	ReduceScatter
	Reduce
	AllGather
	AllToAll
	Broadcast
	Gather
	Scatter
	directs
)

var directNames = [directs]string{"oneshot", "twoshot", "reducescatter", "reduce", "allgather", "alltoall", "broadcast", "gather", "scatter"}

func (d Direct) String() string {
	if d < directs {
		return directNames[d]
	}
	return fmt.Sprintf("direct(%d)", uint8(d))
}

// Reduces reports whether ranks' data are combined.
func (d Direct) Reduces() bool { return d <= Reduce }

// MaxDirect is the most ranks that direct kernels are for, MaxBlocks the most
// blocks that one has.
const (
	MaxDirect = 8
	MaxBlocks = 128
)

const (
	lineBytes  = 128 // of the mailbox
	lineData   = 120
	lineLanes  = 8 // threads
	minMailbox = 4 * lineBytes * lineLanes
)

// ErrNoDirect says that some rank's memory is out of reach, or that there are too
// many ranks for direct kernels.
var ErrNoDirect = errors.New("grid: no direct kernels")

// CanDirect reports whether this Engine has direct kernels. All ranks find the same.
func (e *Engine) CanDirect() bool { return len(e.mail.at) > 0 }

// A mailroom is what direct kernels need besides the Engine.
type mailroom struct {
	at     []uint64 // all ranks' mailboxes
	bytes  int
	epochs uintptr // in device memory
	blocks int     // at most
	tune   func(d Direct, ranks, lines int) (blocks, threads int)
}

// openMail looks where the mailboxes are.
func (e *Engine) openMail() (err error) {
	at, n := e.links.Mail()
	if len(at) != e.ranks || e.ranks < 2 || e.ranks > MaxDirect || n/2/(2*(e.ranks-1)) < minMailbox {
		return nil
	}
	e.mail = mailroom{at: at, bytes: n, blocks: e.mail.blocks, tune: directShape}
	if e.mail.epochs, err = e.alloc(8 * MaxBlocks); err != nil {
		return err
	}
	if err := e.driver.MemsetD8Async(e.mail.epochs, 0, 8*MaxBlocks, e.stream); err != nil {
		return err
	}
	return e.driver.StreamSynchronize(e.stream)
}

// exchangeArgs is struct Args of kernels/cuda/exchange.cu.
type exchangeArgs struct {
	comm
	epochs        uint64
	to, from      [MaxDirect]uint64
	half, second  uint64
	in, inStep    uint64
	out, outStep  uint64
	own, mine     uint64
	part, total   uint64
	scalar, value uint64
	lines, room   uint32
	sends, takes  uint32
	two, finish   uint32
	even, unit    uint32
}

// RunDirect queues a direct kernel on the job's stream, as Run does a program.
// bytes is the length of what one rank sends to one other: all of it for OneShot,
// TwoShot, Reduce and Broadcast, a rank's share for the others. Memory may be in
// place: out the same as in, or the shares that are this rank's. Of a
// job only In, Out, Reducer, Scalar, Stamp and Stream count; the scalar has to have
// the same value on all ranks. A rank that gives or gets nothing needs no In or Out.
//
// Ranks that run different things find out, also those that run programs: where
// both have the epoch, from the lines, otherwise from the sign boards.
func (e *Engine) RunDirect(j *Job, d Direct, root sched.Rank, bytes int) error {
	switch {
	case !e.CanDirect():
		return ErrNoDirect
	case d >= directs || bytes < 0 || root < 0 || int(root) >= e.ranks:
		return fmt.Errorf("grid: %v of %d bytes, root %d of %d ranks", d, bytes, root, e.ranks)
	case d.Reduces() != (j.Reducer != nil):
		return fmt.Errorf("grid: %v: a reduction needs a reducer, and nothing else does", d)
	}
	m, prog, err := e.module(j.Reducer, true)
	if err != nil {
		return err
	}
	size := 1
	if j.Reducer != nil {
		size = j.Reducer.Type().Size()
	}
	a := &e.frame.exchange
	*a = exchangeArgs{
		comm: e.comm(j.Stamp), epochs: uint64(e.mail.epochs),
		in: uint64(j.In.Ptr()), out: uint64(j.Out.Ptr()),
		part: uint64(bytes), total: ^uint64(0),
		scalar: uint64(j.Scalar), value: prog.Value,
	}
	if prog.Finishes {
		a.finish = 1
	}
	a.aim(d, root)
	if err := a.check(e, j, d, root, size); err != nil {
		return err
	}
	a.alignment(size)
	e.address(a, d)
	blocks, threads := e.mail.tune(d, e.ranks, int(a.lines))
	threads = min(threads, e.threads)
	blocks = min(blocks, e.mail.blocks)
	groups := blocks * threads / lineLanes
	if int(a.room) < groups { // a small mailbox
		threads = 32
		blocks = max(1, min(blocks, int(a.room)*lineLanes/threads))
		groups = blocks * threads / lineLanes
	}
	a.room -= a.room % uint32(groups)
	e.frame.launch = cuda.Launch{Grid: cuda.Dim3{X: uint32(blocks)}, Block: cuda.Dim3{X: uint32(threads)}, Stream: j.Stream}
	return e.driver.LaunchKernel(m.run, &e.frame.launch, cuda.ArgsOf(a))
}

// aim says what goes where. part is the length of the message.
func (a *exchangeArgs) aim(d Direct, root sched.Rank) {
	all, n, rank := uint32(1)<<a.ranks-1, a.part, uint64(a.rank)
	isRoot := int(a.rank) == int(root)
	a.sends, a.takes = all, all
	a.own, a.mine = a.in, a.out
	switch d {
	case TwoShot:
		chunk := (n + uint64(a.ranks) - 1) / uint64(a.ranks)
		a.part, a.total, a.two = (chunk+15)&^15, n, 1
		a.inStep, a.outStep = a.part, a.part
	case ReduceScatter:
		a.inStep = n
	case AllGather, Gather:
		a.outStep = n
	case AllToAll:
		a.inStep, a.outStep = n, n
	case Scatter:
		a.inStep = n
	}
	switch d {
	case Reduce, Gather:
		a.sends = 1 << root
		if !isRoot {
			a.takes = 0
		}
	case Broadcast, Scatter:
		a.takes = 1 << root
		if !isRoot {
			a.sends = 0
		}
	}
	a.own += rank * a.inStep
	a.mine += rank * a.outStep
	a.lines = uint32(max(1, (a.part+lineData-1)/lineData))
}

// check looks at the memory, as Job.check does.
func (a *exchangeArgs) check(e *Engine, j *Job, d Direct, root sched.Rank, size int) error {
	n, all, isRoot := int(a.part), int(a.part)*e.ranks, e.rank == root
	if d == TwoShot {
		n = int(a.total)
	}
	in, out := n, n
	switch d {
	case Reduce:
		out = only(isRoot, n)
	case Broadcast:
		in = only(isRoot, n)
	case ReduceScatter:
		in = all
	case AllGather:
		out = all
	case AllToAll:
		in, out = all, all
	case Gather:
		out = only(isRoot, all)
	case Scatter:
		in = only(isRoot, all)
	}
	if reason := outside(j.In, in, size); reason != "" {
		return &ArgumentError{"in", int(e.dev), reason}
	}
	if reason := outside(j.Out, out, size); reason != "" {
		return &ArgumentError{"out", int(e.dev), reason}
	}
	if n%size != 0 {
		return &ArgumentError{"in", int(e.dev), fmt.Sprintf("%d bytes are no multiple of the element's %d bytes", n, size)}
	}
	if j.Scalar%uintptr(size) != 0 {
		return &ArgumentError{"scalar", int(e.dev), fmt.Sprintf("address %#x is no multiple of the element's %d bytes", j.Scalar, size)}
	}
	return nil
}

func only(is bool, n int) int {
	if is {
		return n
	}
	return 0
}

func outside(r mem.Region, n, size int) string {
	switch {
	case n == 0:
		return ""
	case r.IsNil():
		return "null"
	case r.IsHost():
		return "host memory: register it and pass its device pointer"
	case r.Len() < n:
		return fmt.Sprintf("%d bytes, and the operation takes %d", r.Len(), n)
	case r.Ptr()%uintptr(size) != 0:
		return fmt.Sprintf("address %#x is no multiple of the element's %d bytes", r.Ptr(), size)
	}
	return ""
}

// alignment says in which words memory may be read and written.
func (a *exchangeArgs) alignment(size int) {
	lie := a.inStep | a.outStep
	if a.sends != 0 || a.takes>>a.rank&1 != 0 {
		lie |= a.in
	}
	if a.takes != 0 {
		lie |= a.out
	}
	length := a.part
	if a.two == 1 {
		length |= a.total
	}
	switch {
	case lie%8 == 0 && length%8 == 0:
		a.even = 2
	case lie%8 == 0:
		a.even = 1
	}
	a.unit = 1
	if (lie|length)%4 == 0 {
		a.unit = 4
	}
}

// address divides the mailboxes: an area for each other rank, or two, and all
// that twice. Lines of rank p lie in rank q's area (q - p) mod ranks - 1.
func (e *Engine) address(a *exchangeArgs, d Direct) {
	n := e.ranks
	areas := n - 1
	if d == TwoShot {
		areas *= 2
	}
	half := e.mail.bytes / 2 / lineBytes * lineBytes
	area := half / areas / lineBytes * lineBytes
	a.half, a.second, a.room = uint64(half), uint64(area*(n-1)), uint32(area/lineBytes)
	for k := 1; k < n; k++ {
		at := uint64(area * (k - 1))
		rank := int(e.rank)
		a.to[k] = e.mail.at[(rank+k)%n] + at
		a.from[(rank-k+n)%n] = e.mail.at[rank] + at
	}
}

// PrepareDirect is Prepare for direct kernels.
func (e *Engine) PrepareDirect(r *kernels.Reducer) error {
	if !e.CanDirect() {
		return ErrNoDirect
	}
	_, _, err := e.module(r, true)
	return err
}

// directShape is how many blocks of threads carry out an operation of so many
// lines a message.
func directShape(d Direct, ranks, lines int) (blocks, threads int) {
	threads = 512
	if lines*lineLanes < threads {
		threads = roundUp(lines*lineLanes, 32)
	}
	return max(1, min(64, (lines*lineLanes+threads-1)/threads)), threads
}
