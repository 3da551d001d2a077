package rdma

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/internal/ibverbs"
	"github.com/ringo-go/ringo/mem"
)

// Attributes are what queue pairs must be given.
type Attributes struct{ PKeyIndex, Timeout, Retries, ServiceLevel, TrafficClass int }

// receiveID is the number of the work requests that receive, as transport/verbs has it; inlineBytes is the longest
// write whose bytes may be part of a work request.
const (
	receiveID   = 1 << 63
	inlineBytes = 128
)

// A Fabric is a libibverbs whose devices are connected to each other: work is carried
// out when it is posted, unless a port is cut. It checks what a device would check: keys,
// bounds, states, the depths of queues; and that queue pairs have the Attributes.
type Fabric struct {
	sync.Mutex
	handles  uintptr
	devices  []string
	Ethernet bool
	GIDs     []GID
	contexts map[uintptr]*fakeContext
	MRs      map[uint32]*MR
	cqs      map[uintptr]*fakeCQ
	qps      map[uintptr]*fakeQP
	Cut      map[string]bool // ports over which nothing passes ("fx0:1")
	Mute     map[string]bool // ports that receive no acknowledgements
	Lost     map[string]bool // ports that reach no other port
	Dead     map[string]bool // ports over which nothing passes, and retries end at once
	Regs     int             // registrations made
	Refuse   error           // of RegMR
	RefuseFD error           // of RegDMABufMR
	late     []lateWrite     // to GPUs that see the writes only when the device that wrote reads
	Backs    int             // how often devices have read back
	LostBack bool            // reads fail
	SlowBack bool            // reads wait
	NoBack   string          // the device that allows no reads
	NoInline bool
	MTUs     map[string]uint32 // of ports whose MTU code is not 3
	Expect   Attributes        // of all queue pairs: others are refused
}

// A GID is an entry of every port's table.
type GID struct {
	GID    ibverbs.GID
	Kind   ibverbs.GIDType
	Unread bool // reading the entry fails
}

type fakeContext struct {
	*ibverbs.Context
	events chan ibverbs.Event
	stop   chan struct{}
	once   sync.Once
	pds    int
}

// An MR is a registration.
type MR struct {
	Addr   uintptr // as work requests name it
	Len    int
	At     uintptr // the address in this process
	Device string
	Access int
	DMABuf []byte // the mapping of the file, nil for memory of the host
}

// bytes is n bytes of the memory at addr; nil if they are not all inside, of another device or without access.
func (m *MR) bytes(addr uint64, n int, device string, access int) []byte {
	if m == nil || m.Device != device || m.Access&access != access || uintptr(addr) < m.Addr ||
		uintptr(addr)+uintptr(n) > m.Addr+uintptr(m.Len) {
		return nil
	}
	return Span(m.At+uintptr(addr)-m.Addr, n)
}

// A lateWrite is on its way from a device to a GPU. After its arrival the entry is used for another write.
type lateWrite struct {
	device   string
	to, what []byte // to is nil when it has come
}

type fakeCQ struct {
	depth int
	ring  []ibverbs.WC
	armed bool
}

type fakeQP struct {
	port    string
	num     uint32
	state   uint32
	dest    uint32
	cq      *ibverbs.CQ
	cap     ibverbs.QPCap
	psn     [2]uint32 // first packet numbers: of sends, of receives
	sends   []fakeSend
	recvs   int
	access  uint32
	context *fakeContext
}

type fakeSend struct {
	id        uint64
	opcode    uint32
	imm, rkey uint32
	to        uint64
	from      [inlineBytes]byte // inline data
	sge       ibverbs.SGE
	inline    bool
	signaled  bool
	arrived   bool // arrived, but was not acknowledged
}

// IPv4GID is the GID of 10.0.0.last.
func IPv4GID(last byte) ibverbs.GID {
	return ibverbs.GID{10: 0xff, 11: 0xff, 12: 10, 15: last}
}

// NewFabric is a Fabric of devices with one port each. At the end of the test nothing may be left of it.
func NewFabric(tb testing.TB, devices ...string) *Fabric {
	f := &Fabric{
		devices: devices, Ethernet: true,
		GIDs: []GID{{GID: ibverbs.GID{0: 0xfe, 1: 0x80, 15: 1}, Kind: ibverbs.GIDRoCE2},
			{GID: IPv4GID(1), Kind: ibverbs.GIDRoCE2}},
		contexts: map[uintptr]*fakeContext{}, MRs: map[uint32]*MR{}, cqs: map[uintptr]*fakeCQ{},
		qps: map[uintptr]*fakeQP{},
		Cut: map[string]bool{}, Mute: map[string]bool{}, Lost: map[string]bool{}, Dead: map[string]bool{},
		MTUs: map[string]uint32{}, Expect: Attributes{Timeout: 20, Retries: 7},
	}
	tb.Cleanup(func() {
		f.Lock()
		defer f.Unlock()
		require.Empty(tb, f.contexts, "devices that are still open")
		require.Empty(tb, f.MRs, "registrations that are left")
		require.Empty(tb, f.cqs, "completion queues that are left")
		require.Empty(tb, f.qps, "queue pairs that are left")
	})
	return f
}

// mtu is the code of the port's MTU.
func (f *Fabric) mtu(port string) uint32 { return cmp.Or(f.MTUs[port], 3) }

func (f *Fabric) handle() uintptr {
	f.handles++
	return f.handles
}

func (f *Fabric) locked() func() {
	f.Lock()
	return f.Unlock
}

func (f *Fabric) GetDeviceList() ([]string, error) { return f.devices, nil }

func (f *Fabric) OpenDevice(name string) (*ibverbs.Context, error) {
	defer f.locked()()
	c := &fakeContext{&ibverbs.Context{Name: name, Handle: f.handle()}, make(chan ibverbs.Event, 16), make(chan struct{}),
		sync.Once{}, 0}
	f.contexts[c.Handle] = c
	return c.Context, nil
}

func (f *Fabric) CloseDevice(c *ibverbs.Context) error {
	defer f.locked()()
	if f.contexts[c.Handle].pds > 0 {
		return syscall.EBUSY
	}
	delete(f.contexts, c.Handle)
	return nil
}

func (f *Fabric) QueryDevice(*ibverbs.Context) (ibverbs.DeviceAttr, error) {
	return ibverbs.DeviceAttr{NumPorts: 1}, nil
}

func (f *Fabric) QueryPort(c *ibverbs.Context, port int) (ibverbs.PortAttr, error) {
	defer f.locked()()
	a := ibverbs.PortAttr{State: ibverbs.PortActive, ActiveMTU: f.mtu(fmt.Sprintf("%s:%d", c.Name, port)),
		GIDTableLen: int32(len(f.GIDs)), MaxMsg: 1 << 30, PKeyTableLen: 4, LinkLayer: ibverbs.LinkInfiniBand, LID: 7}
	if f.Ethernet {
		a.LinkLayer, a.LID = ibverbs.LinkEthernet, 0
	}
	if f.Cut[fmt.Sprintf("%s:%d", c.Name, port)] {
		a.State = 1
	}
	return a, nil
}

func (f *Fabric) QueryGID(c *ibverbs.Context, port, index int) (ibverbs.GID, ibverbs.GIDType, error) {
	g := f.GIDs[index]
	if g.Unread {
		return g.GID, 0, syscall.ENOENT
	}
	return g.GID, g.Kind, nil
}

func (f *Fabric) context(c *ibverbs.Context) *fakeContext {
	defer f.locked()()
	return f.contexts[c.Handle]
}

func (f *Fabric) GetAsyncEvent(c *ibverbs.Context) (ibverbs.Event, error) {
	x := f.context(c)
	select {
	case e := <-x.events:
		return e, nil
	case <-x.stop:
		return ibverbs.Event{}, errors.New("stopped")
	}
}

func (f *Fabric) StopAsyncEvents(c *ibverbs.Context) {
	x := f.context(c)
	x.once.Do(func() { close(x.stop) })
}

func (f *Fabric) AllocPD(c *ibverbs.Context) (*ibverbs.PD, error) {
	defer f.locked()()
	f.contexts[c.Handle].pds++
	return &ibverbs.PD{Context: c, Handle: f.handle()}, nil
}

func (f *Fabric) DeallocPD(p *ibverbs.PD) error {
	defer f.locked()()
	f.contexts[p.Context.Handle].pds--
	return nil
}

func (f *Fabric) RegMR(p *ibverbs.PD, addr uintptr, n int, access int) (*ibverbs.MR, error) {
	defer f.locked()()
	if f.Refuse != nil {
		return nil, f.Refuse
	}
	return f.keep(&MR{Addr: addr, Len: n, At: addr, Device: p.Context.Name, Access: access}), nil
}

func (f *Fabric) keep(m *MR) *ibverbs.MR {
	f.Regs++
	key := uint32(f.handle())
	f.MRs[key] = m
	return &ibverbs.MR{Handle: uintptr(key), LKey: key, RKey: key}
}

func (f *Fabric) RegDMABufMR(p *ibverbs.PD, offset uint64, n int, iova uint64, fd int, access int) (*ibverbs.MR,
	error) {
	defer f.locked()()
	if f.RefuseFD != nil {
		return nil, f.RefuseFD
	}
	b, err := unix.Mmap(fd, 0, int(offset)+n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	at := uintptr(unsafe.Pointer(&b[offset]))
	return f.keep(&MR{Addr: uintptr(iova), Len: n, At: at, Device: p.Context.Name, Access: access, DMABuf: b}), nil
}

func (f *Fabric) DeregMR(m *ibverbs.MR) error {
	defer f.locked()()
	b := f.MRs[m.LKey].DMABuf
	delete(f.MRs, m.LKey)
	if b == nil {
		return nil
	}
	f.late = slices.DeleteFunc(f.late, func(w lateWrite) bool { return mem.Host(b).Overlaps(mem.Host(w.to)) })
	return unix.Munmap(b)
}

func (f *Fabric) CreateCQ(c *ibverbs.Context, entries int) (*ibverbs.CQ, error) {
	defer f.locked()()
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	q := &ibverbs.CQ{Context: c, Handle: f.handle(), FD: fd}
	f.cqs[q.Handle] = &fakeCQ{depth: entries, ring: make([]ibverbs.WC, 0, entries)}
	return q, nil
}

func (f *Fabric) DestroyCQ(q *ibverbs.CQ) error {
	defer f.locked()()
	delete(f.cqs, q.Handle)
	return unix.Close(q.FD)
}

func (f *Fabric) ReqNotifyCQ(q *ibverbs.CQ) error {
	defer f.locked()()
	f.cqs[q.Handle].armed = true
	return nil
}

func (f *Fabric) GetCQEvent(q *ibverbs.CQ) bool {
	var b [8]byte
	_, err := unix.Read(q.FD, b[:])
	return err == nil
}

func (f *Fabric) PollCQ(q *ibverbs.CQ, into []ibverbs.WC) (int, error) {
	f.Lock()
	defer f.Unlock()
	x := f.cqs[q.Handle]
	n := copy(into, x.ring)
	x.ring = x.ring[:copy(x.ring, x.ring[n:])]
	return n, nil
}

func (f *Fabric) CreateQP(p *ibverbs.PD, q *ibverbs.CQ, c ibverbs.QPCap) (*ibverbs.QP, error) {
	defer f.locked()()
	if f.NoInline && c.MaxInline > 0 {
		return nil, syscall.EINVAL
	}
	h := f.handle()
	f.qps[h] = &fakeQP{port: p.Context.Name + ":1", num: uint32(h), cq: q, cap: c, context: f.contexts[p.Context.Handle]}
	return &ibverbs.QP{Handle: h, Num: uint32(h), Inline: int(c.MaxInline)}, nil
}

func (f *Fabric) ModifyQP(q *ibverbs.QP, a *ibverbs.QPAttr, mask int) error {
	defer f.locked()()
	x := f.qps[q.Handle]
	want := map[uint32]struct {
		from uint32
		mask int
	}{
		ibverbs.QPInit: {0, ibverbs.MaskState | ibverbs.MaskPort | ibverbs.MaskPKeyIndex | ibverbs.MaskAccess},
		ibverbs.QPRTR: {ibverbs.QPInit,
			ibverbs.MaskState | ibverbs.MaskAV | ibverbs.MaskPathMTU | ibverbs.MaskDestQPN | ibverbs.MaskRQPSN |
				ibverbs.MaskMaxDestRdAtomic | ibverbs.MaskMinRNRTimer},
		ibverbs.QPRTS: {ibverbs.QPRTR,
			ibverbs.MaskState | ibverbs.MaskTimeout | ibverbs.MaskRetryCount | ibverbs.MaskRNRRetry | ibverbs.MaskSQPSN |
				ibverbs.MaskMaxRdAtomic},
		ibverbs.QPErr: {x.state, ibverbs.MaskState},
	}[a.State]
	if want.from != x.state || want.mask != mask || a.Access&ibverbs.AccessRemoteRead != 0 && f.NoBack == x.context.Name {
		return syscall.EINVAL
	}
	switch a.State {
	case ibverbs.QPInit:
		if int(a.PKeyIndex) != f.Expect.PKeyIndex {
			return syscall.EINVAL
		}
		x.access = a.Access
	case ibverbs.QPRTR:
		x.dest, x.psn[1] = a.DestQPN, a.RQPSN
		if !f.leads(x, a) {
			return syscall.EINVAL
		}
		if f.Lost[x.port] || (a.AH.IsGlobal == 1) != f.Ethernet || f.Ethernet && a.AH.DGID == (ibverbs.GID{}) {
			return syscall.ENETUNREACH
		}
	case ibverbs.QPRTS:
		if o := &f.Expect; int(a.Timeout) != o.Timeout || int(a.RetryCount) != o.Retries || a.RNRRetry != 7 ||
			a.MaxRdAtomic != 1 {
			return syscall.EINVAL
		}
		x.psn[0] = a.SQPSN
	}
	x.state = a.State
	if x.state == ibverbs.QPErr {
		f.flush(x, ibverbs.WRFlushErr)
	}
	return nil
}

// leads reports whether the attributes of a connection fit both ports and the Fabric's own.
func (f *Fabric) leads(x *fakeQP, a *ibverbs.QPAttr) bool {
	peer, o := f.qps[uintptr(a.DestQPN)], &f.Expect
	if peer == nil || a.PathMTU != min(f.mtu(x.port), f.mtu(peer.port)) || a.MinRNRTimer != 12 || a.MaxDestRdAtomic != 1 {
		return false
	}
	return int(a.AH.SL) == o.ServiceLevel && (a.AH.IsGlobal == 0 || int(a.AH.TC) == o.TrafficClass && a.AH.HopLimit > 1)
}

// flush completes all work of a queue pair with errors; the first send has the reason.
func (f *Fabric) flush(x *fakeQP, first ibverbs.Status) {
	x.state = ibverbs.QPErr
	for _, s := range x.sends {
		f.complete(x, ibverbs.WC{ID: s.id, Status: first})
		first = ibverbs.WRFlushErr
	}
	x.sends = nil
	for ; x.recvs > 0; x.recvs-- {
		f.complete(x, ibverbs.WC{ID: receiveID, Status: ibverbs.WRFlushErr})
	}
}

// Flushed completes work that a queue pair has received, as one does that was told to fail.
func (f *Fabric) Flushed(q *ibverbs.CQ, num uint32) {
	x := f.cqs[q.Handle]
	x.ring = append(x.ring, ibverbs.WC{ID: receiveID, Status: ibverbs.WRFlushErr, QPNum: num})
}

func (f *Fabric) complete(x *fakeQP, w ibverbs.WC) {
	q := f.cqs[x.cq.Handle]
	if len(q.ring) == q.depth {
		panic("completion queue overrun")
	}
	w.QPNum = x.num
	q.ring = append(q.ring, w)
	if q.armed {
		q.armed = false
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], 1)
		if _, err := unix.Write(x.cq.FD, b[:]); err != nil {
			panic(err)
		}
	}
}

func (f *Fabric) DestroyQP(q *ibverbs.QP) error {
	defer f.locked()()
	delete(f.qps, q.Handle)
	return nil
}

func (f *Fabric) PostSend(q *ibverbs.QP, w *ibverbs.SendWR) error {
	f.Lock()
	defer f.Unlock()
	x := f.qps[q.Handle]
	for ; w != nil; w = At[ibverbs.SendWR](w.Next) {
		if err := f.post(x, w); err != nil {
			return err
		}
	}
	f.carry(x)
	return nil
}

func (f *Fabric) post(x *fakeQP, w *ibverbs.SendWR) error {
	s := fakeSend{
		id: w.ID, opcode: w.Opcode, imm: w.Imm, rkey: w.RemoteKey, to: w.RemoteAddr,
		inline: w.Flags&ibverbs.SendInline != 0, signaled: w.Flags&ibverbs.SendSignaled != 0,
	}
	if w.NumSGE > 0 {
		s.sge = *At[ibverbs.SGE](w.SGList)
		if s.inline && copy(s.from[:x.cap.MaxInline], Span(uintptr(s.sge.Addr), int(s.sge.Length))) < int(s.sge.Length) {
			return syscall.EINVAL
		}
	}
	switch {
	case len(x.sends) >= int(x.cap.MaxSendWR):
		return syscall.ENOMEM
	case x.state == ibverbs.QPErr:
		f.complete(x, ibverbs.WC{ID: s.id, Status: ibverbs.WRFlushErr})
		return nil
	case x.state != ibverbs.QPRTS:
		return syscall.EINVAL
	}
	x.sends = append(x.sends, s)
	return nil
}

func (f *Fabric) PostRecv(q *ibverbs.QP, w *ibverbs.RecvWR) error {
	f.Lock()
	defer f.Unlock()
	x := f.qps[q.Handle]
	switch {
	case x.state == 0:
		return syscall.EINVAL
	case x.recvs == int(x.cap.MaxRecvWR):
		return syscall.ENOMEM
	case x.state == ibverbs.QPErr:
		f.complete(x, ibverbs.WC{ID: w.ID, Status: ibverbs.WRFlushErr})
		return nil
	}
	x.recvs++
	if peer := f.qps[uintptr(x.dest)]; peer != nil {
		f.carry(peer)
	}
	return nil
}

// carry carries out the sends of a queue pair, as far as possible. A queue pair that leads back to its
// own device needs no port.
func (f *Fabric) carry(x *fakeQP) {
	n := 0 // sends that are acknowledged
	for i := range x.sends {
		s := &x.sends[i]
		peer := f.qps[uintptr(x.dest)]
		far := peer != x
		if far && (f.Dead[x.port] || peer != nil && f.Dead[peer.port]) || !far && f.LostBack {
			f.flush(x, ibverbs.RetryExcErr)
			return
		}
		if x.state != ibverbs.QPRTS || peer == nil || !far && f.SlowBack || far && (f.Cut[x.port] || f.Cut[peer.port]) ||
			peer.state != ibverbs.QPRTR && peer.state != ibverbs.QPRTS {
			break
		}
		if peer.psn[1] != x.psn[0] {
			panic("packet sequence numbers differ")
		}
		if !s.arrived {
			if s.opcode == ibverbs.OpRDMAWriteWithImm && peer.recvs == 0 {
				break // the receiver is not ready
			}
			if !f.arrive(x, peer, s) {
				f.flush(x, 10) // remote access error
				return
			}
			s.arrived = true
		}
		if f.Mute[x.port] && far {
			continue
		}
		if s.signaled {
			f.complete(x, ibverbs.WC{ID: s.id})
		}
		n++
	}
	x.sends = x.sends[:copy(x.sends, x.sends[n:])]
}

func (f *Fabric) arrive(x, peer *fakeQP, s *fakeSend) bool {
	n := int(s.sge.Length)
	access, local := ibverbs.AccessRemoteWrite, 0
	if s.opcode == ibverbs.OpRDMARead {
		access, local = ibverbs.AccessRemoteRead, ibverbs.AccessLocalWrite
	}
	if n > 0 {
		there := f.MRs[s.rkey].bytes(s.to, n, peer.context.Name, access)
		if there == nil || int(peer.access)&access == 0 {
			return false
		}
		here := s.from[:min(n, len(s.from))]
		if !s.inline {
			if here = f.MRs[s.sge.LocalKey].bytes(s.sge.Addr, n, x.context.Name, local); here == nil {
				panic("local protection error")
			}
		}
		switch {
		case s.opcode == ibverbs.OpRDMARead:
			f.Backs++
			f.land(x.context.Name)
			copy(here, there)
		case f.MRs[s.rkey].Access&ibverbs.AccessRemoteRead != 0: // memory that is read back
			f.delay(peer.context.Name, there, here)
		default:
			copy(there, here)
		}
	}
	if s.opcode == ibverbs.OpRDMAWriteWithImm {
		peer.recvs--
		f.complete(peer, ibverbs.WC{ID: receiveID, Opcode: ibverbs.WCRecvRDMAWithImm, Bytes: uint32(n), Imm: s.imm})
	}
	return true
}

// delay keeps a write from a GPU until land.
func (f *Fabric) delay(device string, to, what []byte) {
	i := slices.IndexFunc(f.late, func(w lateWrite) bool { return w.to == nil })
	if i < 0 {
		i = len(f.late)
		f.late = append(f.late, lateWrite{})
	}
	w := &f.late[i]
	w.device, w.to, w.what = device, to, append(w.what[:0], what...)
}

// land makes the writes of a device visible to GPUs.
func (f *Fabric) land(device string) {
	for i := range f.late {
		if w := &f.late[i]; w.device == device {
			copy(w.to, w.what)
			w.to = nil
		}
	}
}

// SetLink cuts a port, or connects it again, and tells its device.
func (f *Fabric) SetLink(port string, up bool) {
	defer f.locked()()
	f.Cut[port] = !up
	e := ibverbs.Event{Type: ibverbs.EventPortErr, Port: 1}
	if up {
		e.Type = ibverbs.EventPortActive
	}
	for _, c := range f.contexts {
		if c.Name+":1" == port {
			c.events <- e
		}
	}
	if up {
		for _, x := range f.qps {
			f.carry(x)
		}
	}
}

// Expire ends the retries of all work that was not acknowledged. It returns how many
// queue pairs had such work.
func (f *Fabric) Expire() (n int) {
	defer f.locked()()
	for _, x := range f.qps {
		if len(x.sends) > 0 {
			f.flush(x, ibverbs.RetryExcErr)
			n++
		}
	}
	return n
}

// Set changes the Fabric and carries out the work that is possible then.
func (f *Fabric) Set(change func()) {
	defer f.locked()()
	change()
	for _, x := range f.qps {
		f.carry(x)
	}
}

// Registrations is how many registrations were made.
func (f *Fabric) Registrations() int {
	defer f.locked()()
	return f.Regs
}

// At is the T at an address.
func At[T any](addr uintptr) *T { return *(**T)(unsafe.Pointer(&addr)) }

// Span is the n bytes at an address.
func Span(addr uintptr, n int) []byte { return unsafe.Slice(At[byte](addr), n) }

var _ ibverbs.Verbs = (*Fabric)(nil)
