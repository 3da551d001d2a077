package verbs

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ringo-go/ringo/internal/ibverbs"
)

// A rail is a connection's queue pair on one port, with a completion queue of its own.
// Only the goroutine inside of the connection uses a field, unless its comment says otherwise.
type rail struct {
	port    *port
	to      string // the wanted port of the peer, "" for any
	index   int    // among the rails of the connection
	depth   int    // work requests of each kind
	sends   int    // work requests that send
	psn     uint32
	peer    railHello
	cq      *ibverbs.CQ
	qp      *ibverbs.QP // destroyed and killed under mu
	placed  *ibverbs.MR // of the slots of a placed connection
	loop    *ibverbs.QP // leads back to this device and reads the slots back; nil if they need no reading back
	posted  int         // sends under way that will be completed
	used    int         // receives that are not posted again
	armed   bool        // the next completion makes the queue's descriptor readable
	retired bool        // the slots that the rail had not sent went over other rails

	wcs  [16]ibverbs.WC
	send [2]ibverbs.SendWR
	sge  [2]ibverbs.SGE
	recv ibverbs.RecvWR
	back ibverbs.SendWR // the work request of loop
	into ibverbs.SGE    // the memory that back fills

	mu       sync.Mutex    // guards changes of life, and reason
	life     atomic.Uint32 // its phase
	since    atomic.Int64  // when the phase began
	tryAt    atomic.Int64  // when the sender may call the rail back
	wait     time.Duration // the wait before tryAt
	reason   string        // why the rail was given up, for the peer
	portDown atomic.Int64  // time at which the port went down, 0 if it is up
}

func (r *rail) phase() phase { return phase(r.life.Load()) }

// The bits of a work request's ID that mark a receive, a header that is written before its payload, and
// a read of a slot. The other bits are the number of the slot.
const (
	receiveID = 1 << 63
	headerID  = 1 << 62
	readID    = 1 << 61
	probeID   = readID // at the sending end, which reads nothing back
	slotID    = readID - 1
)

// newRail makes a queue pair that is not connected yet.
func newRail(p *port, s shape, o *Options) (*rail, error) {
	var psn [4]byte
	rand.Read(psn[:])
	r := &rail{port: p, depth: s.ring + 2, psn: binary.LittleEndian.Uint32(psn[:]) & 0xffffff}
	r.recv.ID = receiveID
	fail := func(err error) (*rail, error) { return nil, fmt.Errorf("%v: %w", p, err) }
	sends, reads := r.depth, 0
	if s.apart {
		sends, reads = 2*r.depth, r.depth
	}
	r.sends = sends
	var err error
	if r.cq, err = p.dev.verbs.CreateCQ(p.dev.context, sends+r.depth+reads); err != nil {
		return fail(err)
	}
	r.qp, err = p.queuePair(r.cq, sends, r.depth, ibverbs.AccessRemoteWrite, o)
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

// queuePair makes a queue pair whose peer has this access to memory here.
func (p *port) queuePair(cq *ibverbs.CQ, sends, recvs int, access uint32, o *Options) (*ibverbs.QP, error) {
	v := p.dev.verbs
	want := ibverbs.QPCap{MaxSendWR: uint32(sends), MaxRecvWR: uint32(recvs), MaxSendSGE: 1, MaxRecvSGE: 1,
		MaxInline: inlineBytes}
	q, err := v.CreateQP(p.dev.pd, cq, want)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOMEM) { // the device takes fewer bytes by value
		want.MaxInline = 0
		q, err = v.CreateQP(p.dev.pd, cq, want)
	}
	if err != nil {
		return nil, err
	}
	err = v.ModifyQP(q, &ibverbs.QPAttr{State: ibverbs.QPInit, Port: uint8(p.number), PKeyIndex: uint16(o.PKeyIndex),
		Access: access},
		ibverbs.MaskState|ibverbs.MaskPort|ibverbs.MaskPKeyIndex|ibverbs.MaskAccess)
	if err != nil {
		return nil, errors.Join(err, v.DestroyQP(q))
	}
	return q, nil
}

// connect connects the queue pair to the peer's.
func (r *rail) connect(peer railHello, o *Options) error {
	r.peer = peer
	return r.port.lead(r.qp, r.psn, peer, o)
}

// lead connects a queue pair to the peer's; its packets are numbered from psn.
func (p *port) lead(q *ibverbs.QP, psn uint32, peer railHello, o *Options) error {
	v := p.dev.verbs
	a := &ibverbs.QPAttr{
		State: ibverbs.QPRTR, PathMTU: min(p.attr.ActiveMTU, peer.MTU), DestQPN: peer.QPN, RQPSN: peer.PSN,
		MaxDestRdAtomic: 1, MinRNRTimer: rnrTimer,
		AH: ibverbs.AHAttr{Port: uint8(p.number), SL: uint8(o.ServiceLevel), DLID: peer.LID},
	}
	if p.ethernet() || !p.sameSubnet(peer.GID) {
		a.AH.IsGlobal = 1
		a.AH.DGID, a.AH.SGIDIndex, a.AH.HopLimit, a.AH.TC = peer.GID, uint8(p.gidIndex), 255, uint8(o.TrafficClass)
	}
	err := v.ModifyQP(q, a, ibverbs.MaskState|ibverbs.MaskAV|ibverbs.MaskPathMTU|ibverbs.MaskDestQPN|ibverbs.MaskRQPSN|
		ibverbs.MaskMaxDestRdAtomic|ibverbs.MaskMinRNRTimer)
	if err == nil {
		err = v.ModifyQP(q, &ibverbs.QPAttr{
			State: ibverbs.QPRTS, Timeout: uint8(o.Timeout), RetryCount: uint8(o.Retries), RNRRetry: rnrForever, SQPSN: psn,
			MaxRdAtomic: 1,
		}, ibverbs.MaskState|ibverbs.MaskTimeout|ibverbs.MaskRetryCount|ibverbs.MaskRNRRetry|ibverbs.MaskSQPSN|
			ibverbs.MaskMaxRdAtomic)
	}
	if err != nil {
		return fmt.Errorf("connect %v to %s: %w", p, peer.Port, err)
	}
	return nil
}

// Receives are posted before credits are given, so a receiver that is not ready is only
// late, and the sender retries for ever.
const (
	rnrTimer   = 12 // 0.64 ms
	rnrForever = 7
)

// sameSubnet reports whether the peer's port is on this port's subnet, where its LID is enough.
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

// A piece is memory that is written to the peer's memory.
type piece struct {
	from, to   uint64 // addresses, here and there
	length     int
	lkey, rkey uint32
	byValue    bool // this process can read the memory, so its bytes may go into the work request
}

// write writes the piece what to the peer, then the payload if it has a piece of its own. The last write
// carries the immediate. If what is empty, only the immediate is sent.
func (r *rail) write(id uint64, imm uint32, what, payload piece) error {
	w := r.fill(0, id, what)
	w.Then(nil)
	last := w
	if payload.length > 0 {
		// The header's write needs no completion: the payload's completion covers it.
		w.ID, w.Opcode, w.Flags = id|headerID, ibverbs.OpRDMAWrite, w.Flags&^ibverbs.SendSignaled
		last = r.fill(1, id, payload)
		w.Then(last)
	}
	last.Opcode, last.Imm = ibverbs.OpRDMAWriteWithImm, imm
	if err := r.port.dev.verbs.PostSend(r.qp, w); err != nil {
		return err
	}
	r.posted++
	return nil
}

func (r *rail) fill(i int, id uint64, p piece) *ibverbs.SendWR {
	w := &r.send[i]
	w.ID, w.Flags, w.NumSGE = id, ibverbs.SendSignaled, 0
	w.RemoteAddr, w.RemoteKey = p.to, p.rkey
	if p.length > 0 {
		r.sge[i] = ibverbs.SGE{Addr: p.from, Length: uint32(p.length), LocalKey: p.lkey}
		w.Send(&r.sge[i])
	}
	if p.byValue && p.length <= r.qp.Inline {
		w.Flags |= ibverbs.SendInline
	}
	return w
}

// poll returns completions, and whether there may be more. Completions of a queue pair that was replaced are left out.
func (r *rail) poll() (done []ibverbs.WC, more bool, err error) {
	n, err := r.port.dev.verbs.PollCQ(r.cq, r.wcs[:])
	done = slices.DeleteFunc(r.wcs[:n], func(w ibverbs.WC) bool {
		return (r.qp == nil || w.QPNum != r.qp.Num) && (r.loop == nil || w.QPNum != r.loop.Num)
	})
	return done, n == len(r.wcs), err
}

// kill stops the queue pair: it neither sends nor receives any more. The caller holds mu.
func (r *rail) kill() {
	if r.qp != nil {
		_ = r.port.dev.verbs.ModifyQP(r.qp, &ibverbs.QPAttr{State: ibverbs.QPErr}, ibverbs.MaskState)
	}
}

func (r *rail) destroy() {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.port.dev.verbs
	for _, q := range []*ibverbs.QP{r.loop, r.qp} {
		if q != nil {
			_ = v.DestroyQP(q)
		}
	}
	if r.cq != nil {
		_ = v.DestroyCQ(r.cq)
	}
	r.qp, r.loop, r.cq = nil, nil, nil
}
