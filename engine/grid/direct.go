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

// A letter is Message of kernels/cuda/exchange.cu.
type letter struct {
	lines, memory uint64
	bytes, _      uint32
}

// exchangeArgs is struct Args of kernels/cuda/exchange.cu.
type exchangeArgs struct {
	comm
	epochs        uint64
	sends, takes  [MaxDirect]letter // to rank + k; from rank p
	mine          uint64
	scalar, value uint64
	half, second  uint32
	lines, room   uint32
	shortest      uint32
	to, from      uint32
	same, two     uint32
	finish        uint32
	even, unit    uint32
}

// MaxMessage is the longest message: bytes are counted in 32 bits.
const MaxMessage = 1 << 30

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
	case d >= directs || bytes < 0 || bytes > MaxMessage || root < 0 || int(root) >= e.ranks:
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
	if err := e.checkDirect(j, d, root, bytes, size); err != nil {
		return err
	}
	a := &e.frame.exchange
	*a = exchangeArgs{comm: e.comm(j.Stamp), epochs: uint64(e.mail.epochs), scalar: uint64(j.Scalar), value: prog.Value}
	if prog.Finishes {
		a.finish = 1
	}
	e.aim(a, j, d, int(root), bytes)
	e.address(a)
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

// aim says what goes where.
func (e *Engine) aim(a *exchangeArgs, j *Job, d Direct, root, bytes int) {
	n, rank := e.ranks, int(e.rank)
	all, isRoot := uint32(1)<<n-1, rank == root
	part, total := bytes, bytes*n // of a message, of all
	inStep, outStep := 0, 0       // from one rank's to the next
	to, from := all, all          // ranks
	switch d {
	case OneShot:
	case TwoShot:
		part, total, a.two = roundUp((bytes+n-1)/n, 16), bytes, 1
		inStep, outStep = part, part
	case ReduceScatter:
		inStep = part
	case Reduce:
		to, from = 1<<root, mask(isRoot, all)
	case AllGather:
		outStep = part
	case AllToAll:
		inStep, outStep = part, part
	case Broadcast:
		to, from = mask(isRoot, all), 1<<root
	case Gather:
		to, from, outStep = 1<<root, mask(isRoot, all), part
	case Scatter:
		to, from, inStep = mask(isRoot, all), 1<<root, part
	}
	length := func(rank int) uint32 { return uint32(max(0, min(part, total-rank*part))) }
	in, out := uint64(j.In.Ptr()), uint64(j.Out.Ptr())
	for q := range n {
		k := (q - rank + n) % n
		a.to |= to >> q & 1 << k
		if to != 0 || q == rank {
			a.sends[k].memory, a.sends[k].bytes = in+uint64(q*inStep), length(q)
		}
		a.takes[q].memory, a.takes[q].bytes = out+uint64(q*outStep), length(q)
	}
	a.mine = out + uint64(rank*outStep)
	a.from = from
	a.same = mask(inStep == 0, 1)
	a.lines = uint32(max(1, (part+lineData-1)/lineData))
	a.shortest = length(n - 1)

	lie := uint64(inStep | outStep)
	if to != 0 || from>>rank&1 != 0 {
		lie |= in
	}
	if from != 0 {
		lie |= out
	}
	words := uint64(part | total)
	switch {
	case (lie|words)%8 == 0:
		a.even = 2
	case lie%8 == 0:
		a.even = 1
	}
	a.unit = 1
	if (lie|words)%4 == 0 {
		a.unit = 4
	}
}

func mask(is bool, m uint32) uint32 {
	if is {
		return m
	}
	return 0
}

// checkDirect looks at the memory, as Job.check does.
func (e *Engine) checkDirect(j *Job, d Direct, root sched.Rank, n, size int) error {
	all, isRoot := n*e.ranks, e.rank == root
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

// address divides the mailboxes: an area for each other rank, or two, and all
// that twice. Lines to rank + k lie in its area k - 1.
func (e *Engine) address(a *exchangeArgs) {
	n, rank := e.ranks, int(e.rank)
	half := e.mail.bytes / 2 / lineBytes * lineBytes
	area := half / (n - 1) / (1 + int(a.two)) / lineBytes * lineBytes
	a.half, a.second, a.room = uint32(half), uint32(area*(n-1)), uint32(area/lineBytes)
	for k := 1; k < n; k++ {
		at := uint64(area * (k - 1))
		a.sends[k].lines = e.mail.at[(rank+k)%n] + at
		a.takes[(rank-k+n)%n].lines = e.mail.at[rank] + at
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

// directShape is how many blocks of how many threads carry out an operation of
// so many lines a message: a group of threads for each line as long as that is
// not too many, and then fewer with several lines each. From measurements on 2 and
// 4 H200s.
func directShape(d Direct, ranks, lines int) (blocks, threads int) {
	threads = 128
	switch {
	case lines*lineLanes <= threads:
		return 1, roundUp(lines*lineLanes, 32)
	case lines > 4096 && ranks == 2:
		threads = 512
	case lines > 12000, lines > 2048 && lines <= 4096:
		threads = 256
	case lines > 4096 && d == TwoShot:
		return 96, threads
	}
	return min(MaxBlocks, (lines*lineLanes+threads-1)/threads), threads
}
