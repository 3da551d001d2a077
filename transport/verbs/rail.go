package verbs

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/ringo-go/ringo/internal/ibverbs"
)

// A rail is a connection's queue pair on one port, with a completion queue of its own.
// The goroutine inside of the connection uses it; what others use says so.
type rail struct {
	port    *port
	to      string // the peer's port that is meant, "" for any
	index   int    // among the rails of the connection
	depth   int    // work requests of each kind
	psn     uint32
	peer    railHello
	cq      *ibverbs.CQ
	qp      *ibverbs.QP // under mu while it is destroyed
	posted  int         // sends that are not completed
	used    int         // receives that are not posted again
	armed   bool        // the queue's descriptor will tell of a completion
	retired bool        // what it did not send went over others

	wcs  [16]ibverbs.WC
	send ibverbs.SendWR
	sge  ibverbs.SGE
	recv ibverbs.RecvWR

	mu       sync.Mutex
	down     atomic.Bool  // it has failed, here or there
	peerDown atomic.Bool  // the peer knows and will not receive over it any more
	downAt   atomic.Int64 // when it failed
	portDown atomic.Int64 // since when its port is down, 0 if it is up
}

// receiveID marks work that is a receive; that of a send is the number of its slot.
const receiveID = 1 << 63

// newRail makes a queue pair that is not connected yet.
func newRail(p *port, s shape) (*rail, error) {
	var psn [4]byte
	rand.Read(psn[:])
	r := &rail{port: p, depth: s.ring + 2, psn: binary.LittleEndian.Uint32(psn[:]) & 0xffffff}
	r.recv.ID = receiveID
	v := p.dev.verbs
	fail := func(err error) (*rail, error) { return nil, fmt.Errorf("%v: %w", p, err) }
	var err error
	if r.cq, err = v.CreateCQ(p.dev.context, 2*r.depth); err != nil {
		return fail(err)
	}
	want := ibverbs.QPCap{MaxSendWR: uint32(r.depth), MaxRecvWR: uint32(r.depth), MaxSendSGE: 1, MaxRecvSGE: 1, MaxInline: inlineBytes}
	r.qp, err = v.CreateQP(p.dev.pd, r.cq, want)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOMEM) { // a device that takes less by value
		want.MaxInline = 0
		r.qp, err = v.CreateQP(p.dev.pd, r.cq, want)
	}
	if err != nil {
		return fail(errors.Join(err, v.DestroyCQ(r.cq)))
	}
	err = v.ModifyQP(r.qp, &ibverbs.QPAttr{State: ibverbs.QPInit, Port: uint8(p.number), Access: ibverbs.AccessRemoteWrite},
		ibverbs.MaskState|ibverbs.MaskPort|ibverbs.MaskPKeyIndex|ibverbs.MaskAccess)
	if err == nil {
		r.used = r.depth
		err = r.restock()
	}
	if err != nil {
		r.destroy()
		return fail(err)
	}
	return r, nil
}

// connect leads the queue pair to the peer's.
func (r *rail) connect(peer railHello, o *Options) error {
	r.peer = peer
	v, p := r.port.dev.verbs, r.port
	a := &ibverbs.QPAttr{
		State: ibverbs.QPRTR, PathMTU: min(p.attr.ActiveMTU, peer.MTU), DestQPN: peer.QPN, RQPSN: peer.PSN,
		MaxDestRdAtomic: 1, MinRNRTimer: rnrTimer,
		AH: ibverbs.AHAttr{Port: uint8(p.number), SL: uint8(o.ServiceLevel), DLID: peer.LID},
	}
	if p.ethernet() || !p.sameSubnet(peer.GID) {
		a.AH.IsGlobal = 1
		a.AH.DGID, a.AH.SGIDIndex, a.AH.HopLimit, a.AH.TC = peer.GID, uint8(p.gidIndex), 255, uint8(o.TrafficClass)
	}
	err := v.ModifyQP(r.qp, a, ibverbs.MaskState|ibverbs.MaskAV|ibverbs.MaskPathMTU|ibverbs.MaskDestQPN|ibverbs.MaskRQPSN|
		ibverbs.MaskMaxDestRdAtomic|ibverbs.MaskMinRNRTimer)
	if err == nil {
		err = v.ModifyQP(r.qp, &ibverbs.QPAttr{
			State: ibverbs.QPRTS, Timeout: uint8(o.Timeout), RetryCount: uint8(o.Retries), RNRRetry: rnrForever, SQPSN: r.psn, MaxRdAtomic: 1,
		}, ibverbs.MaskState|ibverbs.MaskTimeout|ibverbs.MaskRetryCount|ibverbs.MaskRNRRetry|ibverbs.MaskSQPSN|ibverbs.MaskMaxRdAtomic)
	}
	if err != nil {
		return fmt.Errorf("connect %v to %s: %w", p, peer.Port, err)
	}
	return nil
}

// Receives are posted before credits are given, so a receiver that is not ready is only
// one that is late; it may be so for ever.
const (
	rnrTimer   = 12 // 0.64 ms
	rnrForever = 7
)

// sameSubnet reports whether the LID of an InfiniBand port leads to it.
func (p *port) sameSubnet(peer ibverbs.GID) bool { return [8]byte(p.gid[:8]) == [8]byte(peer[:8]) }

// restock posts the receives that were used.
func (r *rail) restock() error {
	for ; r.used > 0; r.used-- {
		if err := r.port.dev.verbs.PostRecv(r.qp, &r.recv); err != nil {
			return err
		}
	}
	return nil
}

// write sends b, memory of a, to an address of the peer's, with an immediate. An empty b
// is only the immediate.
func (r *rail) write(id uint64, a *area, b []byte, at int, to uint64, imm uint32) error {
	w := &r.send
	w.ID, w.Imm, w.Opcode, w.Flags = id, imm, ibverbs.OpRDMAWriteWithImm, ibverbs.SendSignaled
	w.RemoteAddr, w.RemoteKey = to, r.peer.RKey
	w.NumSGE = 0
	if len(b) > 0 {
		r.sge = ibverbs.SGE{Addr: a.addr() + uint64(at), Length: uint32(len(b)), LocalKey: a.mrs[r.port.dev].LKey}
		w.Send(&r.sge)
	}
	if len(b) <= r.qp.Inline {
		w.Flags |= ibverbs.SendInline
	}
	if err := r.port.dev.verbs.PostSend(r.qp, w); err != nil {
		return err
	}
	r.posted++
	return nil
}

// poll is what was completed.
func (r *rail) poll() ([]ibverbs.WC, error) {
	n, err := r.port.dev.verbs.PollCQ(r.cq, r.wcs[:])
	return r.wcs[:n], err
}

// kill has the queue pair neither send nor receive any more. Any goroutine may call it.
func (r *rail) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.qp != nil {
		_ = r.port.dev.verbs.ModifyQP(r.qp, &ibverbs.QPAttr{State: ibverbs.QPErr}, ibverbs.MaskState)
	}
}

func (r *rail) destroy() {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.port.dev.verbs
	if r.qp != nil {
		_ = v.DestroyQP(r.qp)
		_ = v.DestroyCQ(r.cq)
	}
	r.qp, r.cq = nil, nil
}
