package verbs

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

// A fabric is a libibverbs whose devices are connected to each other: work is carried
// out when it is posted, unless a port is cut. It checks what a device would check: keys,
// bounds, states, the depths of queues; and that queue pairs match the Options.
type fabric struct {
	mu       sync.Mutex
	handles  uintptr
	devices  []string
	ethernet bool
	gids     []fakeGID
	contexts map[uintptr]*fakeContext
	mrs      map[uint32]*fakeMR
	cqs      map[uintptr]*fakeCQ
	qps      map[uintptr]*fakeQP
	cut      map[string]bool // ports over which nothing passes ("fx0:1")
	mute     map[string]bool // ports that receive no acknowledgements
	lost     map[string]bool // ports that reach no other port
	dead     map[string]bool // ports over which nothing passes, and retries end at once
	regs     int             // registrations made
	refuse   error           // of RegMR
	refuseFD error           // of RegDMABufMR
	late     []lateWrite     // to GPUs that see the writes only when the device that wrote reads
	backs    int             // how often devices have read back
	lostBack bool            // reads fail
	slowBack bool            // reads wait
	noBack   string          // the device that allows no reads
	noInline bool
	mtus     map[string]uint32 // of ports whose MTU code is not 3
	options  Options           // of all queue pairs
}

type fakeGID struct {
	gid    ibverbs.GID
	kind   ibverbs.GIDType
	unread bool // reading the entry fails
}

type fakeContext struct {
	*ibverbs.Context
	events chan ibverbs.Event
	stop   chan struct{}
	once   sync.Once
	pds    int
}

type fakeMR struct {
	addr   uintptr // as work requests name it
	n      int
	at     uintptr // the address in this process
	device string
	access int
	dmabuf []byte // the mapping of the file, nil for memory of the host
}

// bytes is n bytes of the memory at addr; nil if they are not all inside, of another device or without access.
func (m *fakeMR) bytes(addr uint64, n int, device string, access int) []byte {
	if m == nil || m.device != device || m.access&access != access || uintptr(addr) < m.addr ||
		uintptr(addr)+uintptr(n) > m.addr+uintptr(m.n) {
		return nil
	}
	return span(m.at+uintptr(addr)-m.addr, n)
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

func ipv4GID(last byte) ibverbs.GID {
	return ibverbs.GID{10: 0xff, 11: 0xff, 12: 10, 15: last}
}

func newFabric(tb testing.TB, devices ...string) *fabric {
	f := &fabric{
		devices: devices, ethernet: true,
		gids: []fakeGID{{gid: ibverbs.GID{0: 0xfe, 1: 0x80, 15: 1}, kind: ibverbs.GIDRoCE2},
			{gid: ipv4GID(1), kind: ibverbs.GIDRoCE2}},
		contexts: map[uintptr]*fakeContext{}, mrs: map[uint32]*fakeMR{}, cqs: map[uintptr]*fakeCQ{},
		qps: map[uintptr]*fakeQP{},
		cut: map[string]bool{}, mute: map[string]bool{}, lost: map[string]bool{}, dead: map[string]bool{},
		mtus: map[string]uint32{},
	}
	f.expect(Options{})
	tb.Cleanup(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		require.Empty(tb, f.contexts, "devices that are still open")
		require.Empty(tb, f.mrs, "registrations that are left")
		require.Empty(tb, f.cqs, "completion queues that are left")
		require.Empty(tb, f.qps, "queue pairs that are left")
	})
	return f
}

// expect makes the fabric refuse queue pairs that do not match o.
func (f *fabric) expect(o Options) {
	if err := o.check(); err != nil {
		panic(err)
	}
	f.options = o
}

// mtu is the code of the port's MTU.
func (f *fabric) mtu(port string) uint32 { return cmp.Or(f.mtus[port], 3) }

func (f *fabric) handle() uintptr {
	f.handles++
	return f.handles
}

func (f *fabric) locked() func() {
	f.mu.Lock()
	return f.mu.Unlock
}

func (f *fabric) GetDeviceList() ([]string, error) { return f.devices, nil }

func (f *fabric) OpenDevice(name string) (*ibverbs.Context, error) {
	defer f.locked()()
	c := &fakeContext{&ibverbs.Context{Name: name, Handle: f.handle()}, make(chan ibverbs.Event, 16), make(chan struct{}),
		sync.Once{}, 0}
	f.contexts[c.Handle] = c
	return c.Context, nil
}

func (f *fabric) CloseDevice(c *ibverbs.Context) error {
	defer f.locked()()
	if f.contexts[c.Handle].pds > 0 {
		return syscall.EBUSY
	}
	delete(f.contexts, c.Handle)
	return nil
}

func (f *fabric) QueryDevice(*ibverbs.Context) (ibverbs.DeviceAttr, error) {
	return ibverbs.DeviceAttr{NumPorts: 1}, nil
}

func (f *fabric) QueryPort(c *ibverbs.Context, port int) (ibverbs.PortAttr, error) {
	defer f.locked()()
	a := ibverbs.PortAttr{State: ibverbs.PortActive, ActiveMTU: f.mtu(fmt.Sprintf("%s:%d", c.Name, port)),
		GIDTableLen: int32(len(f.gids)), MaxMsg: 1 << 30, PKeyTableLen: 4, LinkLayer: ibverbs.LinkInfiniBand, LID: 7}
	if f.ethernet {
		a.LinkLayer, a.LID = ibverbs.LinkEthernet, 0
	}
	if f.cut[fmt.Sprintf("%s:%d", c.Name, port)] {
		a.State = 1
	}
	return a, nil
}

func (f *fabric) QueryGID(c *ibverbs.Context, port, index int) (ibverbs.GID, ibverbs.GIDType, error) {
	g := f.gids[index]
	if g.unread {
		return g.gid, 0, syscall.ENOENT
	}
	return g.gid, g.kind, nil
}

func (f *fabric) context(c *ibverbs.Context) *fakeContext {
	defer f.locked()()
	return f.contexts[c.Handle]
}

func (f *fabric) GetAsyncEvent(c *ibverbs.Context) (ibverbs.Event, error) {
	x := f.context(c)
	select {
	case e := <-x.events:
		return e, nil
	case <-x.stop:
		return ibverbs.Event{}, errors.New("stopped")
	}
}

func (f *fabric) StopAsyncEvents(c *ibverbs.Context) {
	x := f.context(c)
	x.once.Do(func() { close(x.stop) })
}

func (f *fabric) AllocPD(c *ibverbs.Context) (*ibverbs.PD, error) {
	defer f.locked()()
	f.contexts[c.Handle].pds++
	return &ibverbs.PD{Context: c, Handle: f.handle()}, nil
}

func (f *fabric) DeallocPD(p *ibverbs.PD) error {
	defer f.locked()()
	f.contexts[p.Context.Handle].pds--
	return nil
}

func (f *fabric) RegMR(p *ibverbs.PD, addr uintptr, n int, access int) (*ibverbs.MR, error) {
	defer f.locked()()
	if f.refuse != nil {
		return nil, f.refuse
	}
	return f.keep(&fakeMR{addr: addr, n: n, at: addr, device: p.Context.Name, access: access}), nil
}

func (f *fabric) keep(m *fakeMR) *ibverbs.MR {
	f.regs++
	key := uint32(f.handle())
	f.mrs[key] = m
	return &ibverbs.MR{Handle: uintptr(key), LKey: key, RKey: key}
}

func (f *fabric) RegDMABufMR(p *ibverbs.PD, offset uint64, n int, iova uint64, fd int, access int) (*ibverbs.MR,
	error) {
	defer f.locked()()
	if f.refuseFD != nil {
		return nil, f.refuseFD
	}
	b, err := unix.Mmap(fd, 0, int(offset)+n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	at := uintptr(unsafe.Pointer(&b[offset]))
	return f.keep(&fakeMR{addr: uintptr(iova), n: n, at: at, device: p.Context.Name, access: access, dmabuf: b}), nil
}

func (f *fabric) DeregMR(m *ibverbs.MR) error {
	defer f.locked()()
	b := f.mrs[m.LKey].dmabuf
	delete(f.mrs, m.LKey)
	if b == nil {
		return nil
	}
	f.late = slices.DeleteFunc(f.late, func(w lateWrite) bool { return mem.Host(b).Overlaps(mem.Host(w.to)) })
	return unix.Munmap(b)
}

func (f *fabric) CreateCQ(c *ibverbs.Context, entries int) (*ibverbs.CQ, error) {
	defer f.locked()()
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	q := &ibverbs.CQ{Context: c, Handle: f.handle(), FD: fd}
	f.cqs[q.Handle] = &fakeCQ{depth: entries, ring: make([]ibverbs.WC, 0, entries)}
	return q, nil
}

func (f *fabric) DestroyCQ(q *ibverbs.CQ) error {
	defer f.locked()()
	delete(f.cqs, q.Handle)
	return unix.Close(q.FD)
}

func (f *fabric) ReqNotifyCQ(q *ibverbs.CQ) error {
	defer f.locked()()
	f.cqs[q.Handle].armed = true
	return nil
}

func (f *fabric) GetCQEvent(q *ibverbs.CQ) bool {
	var b [8]byte
	_, err := unix.Read(q.FD, b[:])
	return err == nil
}

func (f *fabric) PollCQ(q *ibverbs.CQ, into []ibverbs.WC) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.cqs[q.Handle]
	n := copy(into, x.ring)
	x.ring = x.ring[:copy(x.ring, x.ring[n:])]
	return n, nil
}

func (f *fabric) CreateQP(p *ibverbs.PD, q *ibverbs.CQ, c ibverbs.QPCap) (*ibverbs.QP, error) {
	defer f.locked()()
	if f.noInline && c.MaxInline > 0 {
		return nil, syscall.EINVAL
	}
	h := f.handle()
	f.qps[h] = &fakeQP{port: p.Context.Name + ":1", num: uint32(h), cq: q, cap: c, context: f.contexts[p.Context.Handle]}
	return &ibverbs.QP{Handle: h, Num: uint32(h), Inline: int(c.MaxInline)}, nil
}

func (f *fabric) ModifyQP(q *ibverbs.QP, a *ibverbs.QPAttr, mask int) error {
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
	if want.from != x.state || want.mask != mask || a.Access&ibverbs.AccessRemoteRead != 0 && f.noBack == x.context.Name {
		return syscall.EINVAL
	}
	switch a.State {
	case ibverbs.QPInit:
		if int(a.PKeyIndex) != f.options.PKeyIndex {
			return syscall.EINVAL
		}
		x.access = a.Access
	case ibverbs.QPRTR:
		x.dest, x.psn[1] = a.DestQPN, a.RQPSN
		if !f.leads(x, a) {
			return syscall.EINVAL
		}
		if f.lost[x.port] || (a.AH.IsGlobal == 1) != f.ethernet || f.ethernet && a.AH.DGID == (ibverbs.GID{}) {
			return syscall.ENETUNREACH
		}
	case ibverbs.QPRTS:
		if o := &f.options; int(a.Timeout) != o.Timeout || int(a.RetryCount) != o.Retries || a.RNRRetry != 7 ||
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

// leads reports whether the attributes of a connection fit both ports and the Options.
func (f *fabric) leads(x *fakeQP, a *ibverbs.QPAttr) bool {
	peer, o := f.qps[uintptr(a.DestQPN)], &f.options
	if peer == nil || a.PathMTU != min(f.mtu(x.port), f.mtu(peer.port)) || a.MinRNRTimer != 12 || a.MaxDestRdAtomic != 1 {
		return false
	}
	return int(a.AH.SL) == o.ServiceLevel && (a.AH.IsGlobal == 0 || int(a.AH.TC) == o.TrafficClass && a.AH.HopLimit > 1)
}

// flush completes all work of a queue pair with errors; the first send has the reason.
func (f *fabric) flush(x *fakeQP, first ibverbs.Status) {
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

func (f *fabric) complete(x *fakeQP, w ibverbs.WC) {
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

func (f *fabric) DestroyQP(q *ibverbs.QP) error {
	defer f.locked()()
	delete(f.qps, q.Handle)
	return nil
}

func (f *fabric) PostSend(q *ibverbs.QP, w *ibverbs.SendWR) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.qps[q.Handle]
	for ; w != nil; w = at[ibverbs.SendWR](w.Next) {
		if err := f.post(x, w); err != nil {
			return err
		}
	}
	f.carry(x)
	return nil
}

func (f *fabric) post(x *fakeQP, w *ibverbs.SendWR) error {
	s := fakeSend{
		id: w.ID, opcode: w.Opcode, imm: w.Imm, rkey: w.RemoteKey, to: w.RemoteAddr,
		inline: w.Flags&ibverbs.SendInline != 0, signaled: w.Flags&ibverbs.SendSignaled != 0,
	}
	if w.NumSGE > 0 {
		s.sge = *at[ibverbs.SGE](w.SGList)
		if s.inline && copy(s.from[:x.cap.MaxInline], span(uintptr(s.sge.Addr), int(s.sge.Length))) < int(s.sge.Length) {
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

func (f *fabric) PostRecv(q *ibverbs.QP, w *ibverbs.RecvWR) error {
	f.mu.Lock()
	defer f.mu.Unlock()
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
func (f *fabric) carry(x *fakeQP) {
	n := 0 // sends that are acknowledged
	for i := range x.sends {
		s := &x.sends[i]
		peer := f.qps[uintptr(x.dest)]
		far := peer != x
		if far && (f.dead[x.port] || peer != nil && f.dead[peer.port]) || !far && f.lostBack {
			f.flush(x, ibverbs.RetryExcErr)
			return
		}
		if x.state != ibverbs.QPRTS || peer == nil || !far && f.slowBack || far && (f.cut[x.port] || f.cut[peer.port]) ||
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
		if f.mute[x.port] && far {
			continue
		}
		if s.signaled {
			f.complete(x, ibverbs.WC{ID: s.id})
		}
		n++
	}
	x.sends = x.sends[:copy(x.sends, x.sends[n:])]
}

func (f *fabric) arrive(x, peer *fakeQP, s *fakeSend) bool {
	n := int(s.sge.Length)
	access, local := ibverbs.AccessRemoteWrite, 0
	if s.opcode == ibverbs.OpRDMARead {
		access, local = ibverbs.AccessRemoteRead, ibverbs.AccessLocalWrite
	}
	if n > 0 {
		there := f.mrs[s.rkey].bytes(s.to, n, peer.context.Name, access)
		if there == nil || int(peer.access)&access == 0 {
			return false
		}
		here := s.from[:min(n, len(s.from))]
		if !s.inline {
			if here = f.mrs[s.sge.LocalKey].bytes(s.sge.Addr, n, x.context.Name, local); here == nil {
				panic("local protection error")
			}
		}
		switch {
		case s.opcode == ibverbs.OpRDMARead:
			f.backs++
			f.land(x.context.Name)
			copy(here, there)
		case f.mrs[s.rkey].access&ibverbs.AccessRemoteRead != 0: // memory that is read back
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
func (f *fabric) delay(device string, to, what []byte) {
	i := slices.IndexFunc(f.late, func(w lateWrite) bool { return w.to == nil })
	if i < 0 {
		i = len(f.late)
		f.late = append(f.late, lateWrite{})
	}
	w := &f.late[i]
	w.device, w.to, w.what = device, to, append(w.what[:0], what...)
}

// land makes the writes of a device visible to GPUs.
func (f *fabric) land(device string) {
	for i := range f.late {
		if w := &f.late[i]; w.device == device {
			copy(w.to, w.what)
			w.to = nil
		}
	}
}

// setLink cuts a port, or connects it again, and tells its device.
func (f *fabric) setLink(port string, up bool) {
	defer f.locked()()
	f.cut[port] = !up
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

// expire ends the retries of all work that was not acknowledged. It returns how many
// queue pairs had such work.
func (f *fabric) expire() (n int) {
	defer f.locked()()
	for _, x := range f.qps {
		if len(x.sends) > 0 {
			f.flush(x, ibverbs.RetryExcErr)
			n++
		}
	}
	return n
}

// set changes the fabric and carries out the work that is possible then.
func (f *fabric) set(change func()) {
	defer f.locked()()
	change()
	for _, x := range f.qps {
		f.carry(x)
	}
}

func (f *fabric) registrations() int {
	defer f.locked()()
	return f.regs
}

// at is the T at an address.
func at[T any](addr uintptr) *T { return *(**T)(unsafe.Pointer(&addr)) }

func span(addr uintptr, n int) []byte { return unsafe.Slice(at[byte](addr), n) }

var _ ibverbs.Verbs = (*fabric)(nil)
