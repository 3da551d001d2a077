package grid

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/collective"
	"github.com/ringo-go/ringo/sched"
)

const (
	minMailbox  = 4 * lineBytes * lineLanes
	normThreads = 576 // of a block of a norm kernel: two lines of each group are a row of 16 KiB
	wordBytes   = 2 * 8 * MaxBlocks * (normThreads/lineLanes + normThreads/32)
)

// ErrNoDirect says that some rank's memory is out of reach, that there are too many ranks for direct kernels, or that
// rows are too long for RunNorm.
var ErrNoDirect = errors.New("grid: no direct kernels")

// directKernels carry out collectives of some sizes in one or two hops, through mailboxes.
type directKernels struct {
	*base
	mailboxes
	epochs uintptr // in device memory
	words  uintptr // of norm kernels: sums of parts of rows
	shapes func(d Direct, ranks, lines int) (blocks, threads int)
	args   directArgs // of the current launch
}

func (k *directKernels) open(*Options) (err error) {
	at, n, torn := k.links.Mail()
	if len(at) != k.ranks || k.ranks < 2 || k.ranks > MaxDirect || n/2/(2*(k.ranks-1)) < minMailbox {
		return nil
	}
	k.mailboxes, k.shapes = mailboxes{at, n, only[uint32](torn, 1)}, collective.DirectShape
	k.whole = !torn
	k.epochs, err = k.allocClear(8*MaxBlocks + wordBytes)
	k.words = k.epochs + 8*MaxBlocks
	return err
}

// CanDirect reports whether this Engine has direct kernels. All ranks find the same.
func (k *directKernels) CanDirect() bool { return len(k.mail) > 0 }

// LongestDirect returns how many bytes direct kernels are to send from one rank to another, 0 if
// there are none. Longer messages are correct too, up to MaxMessage, but slots are quicker.
// All ranks find the same.
func (k *directKernels) LongestDirect() int {
	switch {
	case !k.CanDirect():
		return 0
	case k.tear != 0:
		return collective.TornMessage(k.ranks)
	}
	return MaxMessage
}

// RunDirect queues a direct kernel on the job's stream. bytes is the length of the message from
// one rank to one other: the whole buffer for OneShot, TwoShot, Reduce and Broadcast, a rank's share for the others.
// Memory may be in place: out the same as in, or the shares that are this rank's. Of the job Program, InL, OutL, More
// and Capture are not used. A rank that gives no data needs no In, one that gets none needs no Out.
//
// Ranks at different calls find out, also if some run programs: from the lines where
// both are at the same epoch, otherwise from the sign boards.
func (k *directKernels) RunDirect(j *Job, d Direct, root sched.Rank, bytes int) error {
	switch {
	case !k.CanDirect():
		return ErrNoDirect
	case bytes > MaxMessage:
		return fmt.Errorf("grid: %v of %d bytes, root %d of %d ranks", d, bytes, root, k.ranks)
	}
	if err := k.checkDirect(j, d, root, bytes); err != nil {
		return err
	}
	m, prog, err := k.module(j.Reducer, "direct")
	if err != nil {
		return err
	}
	a := &k.args
	*a = directArgs{comm: k.collective(j), epochs: uint64(k.epochs), scalar: uint64(j.Scalar), value: prog.Value,
		hash: hashOf(j.Stamp), finish: only[uint32](prog.Finishes, 1), early: only[uint32](j.Early, 1)}
	a.setTransfers(j, d, int(root), bytes)
	a.setMailboxes(&k.mailboxes)
	blocks, threads := k.shapes(d, k.ranks, int(a.lines))
	threads = min(threads, k.threads)
	blocks = j.most(min(blocks, k.directBlocks))
	groups := blocks * threads / lineLanes
	if int(a.room) < groups { // a small mailbox
		threads = 32
		blocks = max(1, min(blocks, int(a.room)*lineLanes/threads))
		groups = blocks * threads / lineLanes
	}
	a.room -= a.room % uint32(groups)
	k.shape(blocks, threads, 0, j.Stream)
	return k.queue(m.run, cuda.ArgsOf(a), j.Event)
}

// PrepareDirect is Prepare for direct kernels.
func (k *directKernels) PrepareDirect(r *kernels.Reducer) error {
	if !k.CanDirect() {
		return ErrNoDirect
	}
	return k.prepared(r, "direct")
}

// all is a set of all ranks: each has data for each other, and nobody's lines can be spared.
func (k *directKernels) all() uint32 { return 1<<k.ranks - 1 }
