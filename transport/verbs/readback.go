package verbs

import (
	"fmt"

	"github.com/ringo-go/ringo/internal/ibverbs"
)

// What a device writes to a GPU's memory, and the completion that tells of it in the host's, take two
// ways over PCIe. A read of the same device to the same GPU cannot overtake its writes, on the way
// there or back (PCI Express Base Specification, "Transaction Ordering"), so when its answer is there
// what was written before is too. NCCL flushes in the same way. GPUs that see all in order need
// nothing of this, see transport.Memory.

// loopback makes the queue pair over which a device reads back what came over the rail: both of its
// ends are one.
func (r *rail) loopback(o *Options) error {
	q, err := r.port.queuePair(r.cq, r.depth, 1, ibverbs.AccessRemoteRead, o)
	if err != nil {
		return fmt.Errorf("%v: %w", r.port, err)
	}
	self := r.hello(0)
	self.QPN = q.Num
	if err := r.port.lead(q, r.psn, self, o); err != nil {
		_ = r.port.dev.verbs.DestroyQP(q)
		return err
	}
	r.loop = q
	return nil
}

// readBack reads a byte of slot number n; the work is completed when it is there.
func (r *rail) readBack(n, from, into uint64, lkey uint32) error {
	w := &r.back
	w.ID, w.Opcode, w.Flags = n|readID, ibverbs.OpRDMARead, ibverbs.SendSignaled
	w.RemoteAddr, w.RemoteKey = from, r.placed.RKey
	r.into = ibverbs.SGE{Addr: into, Length: 1, LocalKey: lkey}
	w.Send(&r.into)
	return r.port.dev.verbs.PostSend(r.loop, w)
}
