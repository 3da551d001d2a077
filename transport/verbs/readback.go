package verbs

import (
	"fmt"

	"github.com/ringo-go/ringo/internal/ibverbs"
)

// A device's write to a GPU's memory and the completion in host memory take two ways over PCIe, so the
// completion may be seen first. A read by the same device from the same GPU cannot overtake the writes,
// there or back (PCI Express Base Specification, "Transaction Ordering"): when the read completes, the
// earlier writes have arrived. NCCL flushes in the same way. GPUs that see writes in order need no
// read, see transport.Memory.

// loopback makes the queue pair over which a device reads back slots that came over the rail. It is
// connected to itself.
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

// readBack reads a byte of slot number n, at address from; when the read completes, the slot is visible.
func (r *rail) readBack(n, from, into uint64, lkey uint32) error {
	w := &r.back
	w.ID, w.Opcode, w.Flags = n|readID, ibverbs.OpRDMARead, ibverbs.SendSignaled
	w.RemoteAddr, w.RemoteKey = from, r.placed.RKey
	r.into = ibverbs.SGE{Addr: into, Length: 1, LocalKey: lkey}
	w.Send(&r.into)
	return r.port.dev.verbs.PostSend(r.loop, w)
}
