package grid

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/collective"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/sched"
)

// A Direct is a collective carried out by direct access to the peers' memory.
type Direct = collective.Direct

const (
	OneShot       = collective.OneShot
	TwoShot       = collective.TwoShot
	ReduceScatter = collective.ReduceScatter
	Reduce        = collective.Reduce
	AllGather     = collective.AllGather
	AllToAll      = collective.AllToAll
	Broadcast     = collective.Broadcast
	Gather        = collective.Gather
	Scatter       = collective.Scatter
)

const (
	MaxDirect  = collective.MaxRanks   // ranks of direct and window kernels
	MaxMessage = collective.MaxMessage // bytes from one rank to another by a direct kernel
	MaxBlocks  = collective.MaxBlocks  // blocks of a direct or window kernel
)

const (
	lineBytes  = 128 // of the mailbox
	lineData   = collective.LineData
	lineLanes  = collective.LineThreads
	minMailbox = 4 * lineBytes * lineLanes
)

// ErrNoDirect says that some rank's memory is out of reach, that there are too many ranks for direct kernels, or that
// rows are too long for RunNorm.
var ErrNoDirect = errors.New("grid: no direct kernels")

// CanDirect reports whether this Engine has direct kernels. All ranks find the same.
func (e *Engine) CanDirect() bool { return len(e.mail.at) > 0 }

// LongestDirect is how many bytes direct kernels are to send from one rank to another, 0 if
// there are none. Longer messages are correct too, up to MaxMessage, but slots are quicker.
// All ranks find the same.
func (e *Engine) LongestDirect() int {
	switch {
	case !e.CanDirect():
		return 0
	case e.mail.torn != 0:
		return collective.TornMessage(e.ranks)
	}
	return MaxMessage
}

// A mailboxes is the state of direct and norm kernels besides the Engine's.
type mailboxes struct {
	at     []uint64 // all ranks' mailboxes
	bytes  int
	torn   uint32  // 1: lines may arrive in parts
	epochs uintptr // in device memory
	words  uintptr // of norm kernels: sums of parts of rows
	part   int     // lines that a part of a row has in norm kernels, where there are blocks for so many
	blocks int     // at most
	tune   func(d Direct, ranks, lines int) (blocks, threads int)
}

func (e *Engine) openMail() (err error) {
	at, n, torn := e.links.Mail()
	if len(at) != e.ranks || e.ranks < 2 || e.ranks > MaxDirect || n/2/(2*(e.ranks-1)) < minMailbox {
		return nil
	}
	e.mail = mailboxes{at: at, bytes: n, torn: mask(torn, 1), blocks: e.mail.blocks, part: collective.NormPart,
		tune: collective.DirectShape}
	if e.mail.epochs, err = e.alloc(8*MaxBlocks + normWords); err != nil {
		return err
	}
	e.mail.words = e.mail.epochs + 8*MaxBlocks
	return e.clear(e.mail.epochs, 8*MaxBlocks+normWords)
}

// RunDirect queues a direct kernel on the job's stream, as Run does a program. bytes is the length of the message from
// one rank to one other: the whole buffer for OneShot, TwoShot, Reduce and Broadcast, a rank's share for the others.
// Memory may be in place: out the same as in, or the shares that are this rank's. Of the job Program, InL, OutL, More
// and Capture are not used. A rank that gives no data needs no In, one that gets none needs no Out.
//
// Ranks at different calls find out, also if some run programs: from the lines where
// both are at the same epoch, otherwise from the sign boards.
func (e *Engine) RunDirect(j *Job, d Direct, root sched.Rank, bytes int) error {
	switch {
	case !e.CanDirect():
		return ErrNoDirect
	case !d.Valid() || bytes < 0 || bytes > MaxMessage || root < 0 || int(root) >= e.ranks:
		return fmt.Errorf("grid: %v of %d bytes, root %d of %d ranks", d, bytes, root, e.ranks)
	case d.Reduces() != (j.Reducer != nil):
		return fmt.Errorf("grid: %v: a reduction needs a reducer, and nothing else does", d)
	}
	m, prog, err := e.module(j.Reducer, "direct")
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
	a := &e.frame.direct
	*a = directArgs{comm: e.collective(j), epochs: uint64(e.mail.epochs), scalar: uint64(j.Scalar), value: prog.Value,
		hash: hashOf(j.Stamp)}
	if prog.Finishes {
		a.finish = 1
	}
	a.early = mask(j.Early, 1)
	e.setTransfers(a, j, d, int(root), bytes)
	e.setMailboxes(a)
	blocks, threads := e.mail.tune(d, e.ranks, int(a.lines))
	threads = min(threads, e.threads)
	blocks = j.most(min(blocks, e.mail.blocks))
	groups := blocks * threads / lineLanes
	if int(a.room) < groups { // a small mailbox
		threads = 32
		blocks = max(1, min(blocks, int(a.room)*lineLanes/threads))
		groups = blocks * threads / lineLanes
	}
	a.room -= a.room % uint32(groups)
	e.frame.launch = cuda.Launch{Grid: cuda.Dim3{X: uint32(blocks)}, Block: cuda.Dim3{X: uint32(threads)},
		Stream: j.Stream}
	return e.queue(m.run, cuda.ArgsOf(a), j.Event)
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
		return &ArgumentError{"scalar", int(e.dev),
			fmt.Sprintf("address %#x is no multiple of the element's %d bytes", j.Scalar, size)}
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

// PrepareDirect is Prepare for direct kernels.
func (e *Engine) PrepareDirect(r *kernels.Reducer) error {
	if !e.CanDirect() {
		return ErrNoDirect
	}
	_, _, err := e.module(r, "direct")
	return err
}
