package grid

import (
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
)

// A Batch is small all-reduces of a group that are carried out together, each as by RunDirect with OneShot. All ranks
// make the same batches: of as many calls, in the same order. Ranks may take different numbers of kernels.
type Batch struct {
	calls, done           int
	blocks, threads, room int
}

// MaxMany is the most bytes of an all-reduce in a Batch: one that is longer fills the
// GPU's blocks by itself.
const MaxMany = 16 << 10

// manyEntries is how many all-reduces fit into a kernel's arguments, of 4 KiB.
const manyEntries = 143

// manyEntry is struct Entry of kernels/cuda/many.cu.
type manyEntry struct {
	in, out     uint64
	bytes, hash uint32
}

// manyArgs is struct ManyArgs of kernels/cuda/many.cu.
type manyArgs struct {
	direct             directArgs
	first, past, count uint32
	last, room, _      uint32
	entry              [manyEntries]manyEntry
}

// batches carry out batches of small all-reduces.
type batches struct {
	*directKernels
	args manyArgs
}

// CanMany reports whether a Batch may have all-reduces of a number of bytes. All ranks
// find the same.
func (k *batches) CanMany(bytes int) bool {
	return k.CanDirect() && bytes <= MaxMany && lines(bytes) <= k.mailArea()
}

// mailArea is how many lines of one round each pair of ranks has in a mailbox.
func (k *batches) mailArea() int { return k.mailBytes / 2 / lineBytes / (k.ranks - 1) }

// Batch begins a batch of so many calls on at most most blocks. bytes is the length of the longest call, for which
// CanMany holds. All ranks give the same arguments.
func (k *batches) Batch(calls, bytes, most int) Batch {
	need, area := lines(bytes), k.mailArea()
	b := Batch{calls: calls,
		blocks: max(1, min(k.directBlocks, most, calls, area/max(need, minMailbox/lineBytes/lineLanes)))}
	b.room = area / b.blocks
	b.threads = min(256, k.threads, roundUp(need*lineLanes, 32), b.room*lineLanes&^31)
	return b
}

// PrepareMany is Prepare for RunMany.
func (k *batches) PrepareMany(r *kernels.Reducer) error {
	return k.prepared(r, "many")
}

// RunMany queues one kernel for the next all-reduces of a batch, and returns how many it carries out: as many as fit
// into its arguments and are on one stream. The jobs are in the order of the batch, have one Reducer, and are as for
// RunDirect. The kernel takes them in no order: none may use memory that another one writes. The first job's Event is
// recorded if this kernel carries out all jobs.
func (k *batches) RunMany(b *Batch, jobs []Job) (n int, err error) {
	m, prog, err := k.module(jobs[0].Reducer, "many")
	if err != nil {
		return 0, err
	}
	a := &k.args
	d := &a.direct
	*d = directArgs{comm: k.collective(&jobs[0]), epochs: uint64(k.epochs), scalar: uint64(jobs[0].Scalar),
		value: prog.Value, from: k.all(), finish: only[uint32](prog.Finishes, 1)}
	d.setMailboxes(&k.mailboxes)
	for n = 0; n < min(len(jobs), manyEntries) && jobs[n].Stream == jobs[0].Stream; n++ {
		j := &jobs[n]
		if err := k.checkDirect(j, OneShot, 0, j.In.Len()); err != nil {
			return 0, err
		}
		x := manyEntry{in: uint64(j.In.Ptr()), out: uint64(j.Out.Ptr()), bytes: uint32(j.In.Len())}
		x.hash = uint32(hashOf(j.Stamp, uint64(b.calls))>>32)&^3 | evenness(&x)
		a.entry[n] = x
	}
	if n == 0 || b.done+n > b.calls {
		return 0, fmt.Errorf("grid: %d more calls in a batch of %d", len(jobs), b.calls)
	}
	d.fresh = uint16(n)
	if k.signs != 0 {
		d.sign = max(1, uint32(hashOf(jobs[0].Stamp, uint64(b.calls))>>32))
	}
	a.first, a.count, a.last, a.room = uint32(b.done), uint32(n), 0, uint32(b.room)
	b.done += n
	a.past = uint32(b.done)
	if b.done == b.calls {
		a.past, a.last = uint32(roundUp(b.calls, b.blocks)), 1
	}
	k.shape(b.blocks, b.threads, 0, jobs[0].Stream)
	return n, k.queue(m.run, cuda.ArgsOf(a), only(n == len(jobs), jobs[0].Event))
}

// evenness is even of DirectArgs in kernels/cuda/direct.h, for an entry.
func evenness(x *manyEntry) uint32 {
	switch at := x.in | x.out; {
	case (at|uint64(x.bytes))%8 == 0:
		return 2
	case at%8 == 0:
		return 1
	}
	return 0
}
