package ibverbs

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"github.com/ringo-go/ringo/internal/dl"
)

// library is the Verbs of a libibverbs.
type library struct{ fns [functionCount]uintptr }

// Offsets of fields that no function gives, in structures of the library. The functions that
// post and poll are not exported: a context has them among its operations.
const (
	contextAsyncFD  = 268
	contextABI      = 320
	contextPollCQ   = 96
	contextNotifyCQ = 104
	contextPostSend = 208
	contextPostRecv = 216
	qpNum           = 52
	mrLKey          = 36
	mrRKey          = 40
	channelFD       = 8
)

// A verbs_context ends with an ibv_context. Before that lie, at these distances, the size of the whole
// and the functions of newer libraries.
const (
	contextSize      = 328
	beforeSize       = 8
	beforeQueryPort  = 320
	extendedContexts = ^uintptr(0) // the abi_compat of an ibv_context that lies in a verbs_context
)

// later is the function at a distance before a context, 0 if the library is older than the function.
func later(context, before uintptr) uintptr {
	if load[uintptr](context, contextABI) != extendedContexts ||
		load[uintptr](context-beforeSize, 0) < before+contextSize {
		return 0
	}
	return load[uintptr](context-before, 0)
}

// load reads a value of C's memory.
func load[T any](at uintptr, offset uintptr) T {
	at += offset
	return **(**T)(unsafe.Pointer(&at))
}

// call calls a function and gives errno with its result.
//
//go:uintptrescapes
func (l *library) call(f function, args ...uintptr) (uintptr, syscall.Errno) {
	return l.callAt(l.fns[f], args...)
}

// callAt does the same with a function at an address.
//
//go:uintptrescapes
func (l *library) callAt(fn uintptr, args ...uintptr) (uintptr, syscall.Errno) {
	runtime.LockOSThread() // errno is the thread's
	defer runtime.UnlockOSThread()
	r := dl.Call(fn, args...)
	return r, syscall.Errno(load[int32](dl.Call(l.fns[errnoLocation]), 0))
}

// made is the error of a function that returns an object, or NULL and errno.
func made(f function, r uintptr, errno syscall.Errno) error {
	if r != 0 {
		return nil
	}
	return &Error{functionNames[f], errno}
}

// done is the error of a function that returns 0, or an errno, or -1 and errno.
func done(f function, r uintptr, errno syscall.Errno) error {
	switch n := int32(r); {
	case n == 0:
		return nil
	case n > 0:
		errno = syscall.Errno(n)
	}
	return &Error{functionNames[f], errno}
}

// devices calls f with each device until it returns false.
func (l *library) devices(f func(device uintptr, name string) bool) error {
	var n int32
	list, errno := l.call(getDeviceList, uintptr(unsafe.Pointer(&n)))
	if list == 0 {
		if errno == syscall.ENOSYS { // the kernel has no RDMA
			return nil
		}
		return made(getDeviceList, list, errno)
	}
	defer l.call(freeDeviceList, list)
	for i := range uintptr(n) {
		d := load[uintptr](list, 8*i)
		name, _ := l.call(getDeviceName, d)
		if !f(d, text(name)) {
			break
		}
	}
	return nil
}

// text is a string of C.
func text(at uintptr) string {
	var b strings.Builder
	for ; ; at++ {
		c := load[byte](at, 0)
		if c == 0 {
			return b.String()
		}
		b.WriteByte(c)
	}
}

func (l *library) GetDeviceList() (names []string, err error) {
	err = l.devices(func(_ uintptr, name string) bool {
		names = append(names, name)
		return true
	})
	return names, err
}

func (l *library) OpenDevice(name string) (*Context, error) {
	c := &Context{Name: name}
	failed := fmt.Errorf("no device %s", name)
	err := l.devices(func(d uintptr, n string) bool {
		if n != name {
			return true
		}
		r, errno := l.call(openDevice, d)
		c.Handle, failed = r, made(openDevice, r, errno)
		return false
	})
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	// The events' descriptor is duplicated: os.File closes its own.
	fd, err := duplicate(load[int32](c.Handle, contextAsyncFD))
	if err != nil {
		l.call(closeDevice, c.Handle)
		return nil, err
	}
	c.events = os.NewFile(fd, name+" events")
	return c, nil
}

func (l *library) CloseDevice(c *Context) error {
	l.StopAsyncEvents(c)
	r, errno := l.call(closeDevice, c.Handle)
	return done(closeDevice, r, errno)
}

func (l *library) QueryDevice(c *Context) (a DeviceAttr, err error) {
	r, errno := l.call(queryDevice, c.Handle, uintptr(unsafe.Pointer(&a)))
	return a, done(queryDevice, r, errno)
}

// QueryPort calls the context's function, as programs in C do: the exported one fills in the first fields alone.
func (l *library) QueryPort(c *Context, port int) (a PortAttr, err error) {
	if f := later(c.Handle, beforeQueryPort); f != 0 {
		r, errno := l.callAt(f, c.Handle, uintptr(port), uintptr(unsafe.Pointer(&a)), unsafe.Sizeof(a))
		return a, done(queryPort, r, errno)
	}
	r, errno := l.call(queryPort, c.Handle, uintptr(port), uintptr(unsafe.Pointer(&a)))
	return a, done(queryPort, r, errno)
}

// QueryGID asks the library for the address, and the kernel for the type: a library
// that knows both is newer than many that are in use.
func (l *library) QueryGID(c *Context, port, index int) (g GID, t GIDType, err error) {
	r, errno := l.call(queryGID, c.Handle, uintptr(port), uintptr(index), uintptr(unsafe.Pointer(&g)))
	if err := done(queryGID, r, errno); err != nil || g == (GID{}) {
		return g, t, err
	}
	b, err := os.ReadFile(fmt.Sprintf("/sys/class/infiniband/%s/ports/%d/gid_attrs/types/%d", c.Name, port, index))
	if err != nil {
		return g, t, err
	}
	switch s := strings.TrimSpace(string(b)); s {
	case "RoCE v2":
		t = GIDRoCE2
	case "IB/RoCE v1":
		t = GIDRoCE1
	}
	return g, t, nil
}

func (l *library) GetAsyncEvent(c *Context) (Event, error) {
	raw, err := c.events.(*os.File).SyscallConn()
	if err != nil {
		return Event{}, err
	}
	e := new(asyncEvent)
	failed := raw.Read(func(uintptr) bool {
		r, errno := l.call(getAsyncEvent, c.Handle, uintptr(unsafe.Pointer(e)))
		err = done(getAsyncEvent, r, errno)
		return !errors.Is(err, syscall.EAGAIN)
	})
	if err = errors.Join(failed, err); err != nil {
		return Event{}, err
	}
	out := Event{Type: e.kind}
	if e.kind.aboutPort() {
		out.Port = int(int32(e.element))
	}
	l.call(ackAsyncEvent, uintptr(unsafe.Pointer(e)))
	return out, nil
}

func (l *library) StopAsyncEvents(c *Context) { c.events.(*os.File).Close() }

func (l *library) AllocPD(c *Context) (*PD, error) {
	r, errno := l.call(allocPD, c.Handle)
	return &PD{c, r}, made(allocPD, r, errno)
}

func (l *library) DeallocPD(p *PD) error {
	r, errno := l.call(deallocPD, p.Handle)
	return done(deallocPD, r, errno)
}

func (l *library) RegMR(p *PD, addr uintptr, n int, access int) (*MR, error) {
	r, errno := l.call(regMR, p.Handle, addr, uintptr(n), uintptr(access))
	if r == 0 {
		return nil, made(regMR, r, errno)
	}
	return &MR{r, load[uint32](r, mrLKey), load[uint32](r, mrRKey)}, nil
}

func (l *library) RegDMABufMR(p *PD, offset uint64, n int, iova uint64, fd int, access int) (*MR, error) {
	if l.fns[regDMABufMR] == 0 {
		return nil, fmt.Errorf("%s has no %s: it needs rdma-core 34 or newer", Library, functionNames[regDMABufMR])
	}
	r, errno := l.call(regDMABufMR, p.Handle, uintptr(offset), uintptr(n), uintptr(iova), uintptr(fd), uintptr(access))
	if r == 0 {
		return nil, made(regDMABufMR, r, errno)
	}
	return &MR{r, load[uint32](r, mrLKey), load[uint32](r, mrRKey)}, nil
}

func (l *library) DeregMR(m *MR) error {
	r, errno := l.call(deregMR, m.Handle)
	return done(deregMR, r, errno)
}

func (l *library) CreateCQ(c *Context, entries int) (*CQ, error) {
	channel, errno := l.call(createCompChannel, c.Handle)
	if channel == 0 {
		return nil, made(createCompChannel, channel, errno)
	}
	q := &CQ{Context: c, FD: int(load[int32](channel, channelFD)), channel: channel}
	err := nonblocking(q.FD)
	if err == nil {
		q.Handle, errno = l.call(createCQ, c.Handle, uintptr(entries), 0, channel, 0)
		err = made(createCQ, q.Handle, errno)
	}
	if err != nil {
		l.call(destroyCompChannel, channel)
		return nil, err
	}
	q.poll.Fn = load[uintptr](c.Handle, contextPollCQ)
	q.notify.Fn = load[uintptr](c.Handle, contextNotifyCQ)
	return q, nil
}

func (l *library) DestroyCQ(q *CQ) error {
	r, errno := l.call(destroyCQ, q.Handle)
	err := done(destroyCQ, r, errno)
	r, errno = l.call(destroyCompChannel, q.channel)
	return errors.Join(err, done(destroyCompChannel, r, errno))
}

func (l *library) ReqNotifyCQ(q *CQ) error {
	q.notify.Args[0], q.notify.Args[1] = q.Handle, 0
	q.notify.Call()
	if n := int32(q.notify.Result); n != 0 {
		return &Error{"ibv_req_notify_cq", syscall.Errno(max(n, -n))}
	}
	return nil
}

func (l *library) GetCQEvent(q *CQ) bool {
	q.event.Fn, q.ack.Fn = l.fns[getCQEvent], l.fns[ackCQEvents]
	q.event.Args[0], q.event.Args[1], q.event.Args[2] = q.channel, uintptr(unsafe.Pointer(&q.from)),
		uintptr(unsafe.Pointer(&q.context))
	q.event.Call()
	if int32(q.event.Result) != 0 {
		return false
	}
	q.ack.Args[0], q.ack.Args[1] = q.Handle, 1
	q.ack.Call()
	return true
}

func (l *library) PollCQ(q *CQ, into []WC) (int, error) {
	q.poll.Args[0], q.poll.Args[1] = q.Handle, uintptr(len(into))
	q.poll.Args[2] = uintptr(unsafe.Pointer(unsafe.SliceData(into)))
	q.poll.Call()
	runtime.KeepAlive(into)
	n := int32(q.poll.Result)
	if n < 0 {
		return 0, &Error{"ibv_poll_cq", syscall.Errno(-n)}
	}
	return int(n), nil
}

func (l *library) CreateQP(p *PD, q *CQ, c QPCap) (*QP, error) {
	a := &qpInitAttr{sendCQ: q.Handle, recvCQ: q.Handle, cap: c, kind: qpTypeRC}
	r, errno := l.call(createQP, p.Handle, uintptr(unsafe.Pointer(a)))
	if r == 0 {
		return nil, made(createQP, r, errno)
	}
	qp := &QP{Handle: r, Num: load[uint32](r, qpNum), Inline: int(a.cap.MaxInline)}
	qp.send.Fn = load[uintptr](p.Context.Handle, contextPostSend)
	qp.recv.Fn = load[uintptr](p.Context.Handle, contextPostRecv)
	return qp, nil
}

func (l *library) ModifyQP(q *QP, a *QPAttr, mask int) error {
	r, errno := l.call(modifyQP, q.Handle, uintptr(unsafe.Pointer(a)), uintptr(mask))
	return done(modifyQP, r, errno)
}

func (l *library) DestroyQP(q *QP) error {
	r, errno := l.call(destroyQP, q.Handle)
	return done(destroyQP, r, errno)
}

func (l *library) PostSend(q *QP, w *SendWR) error {
	return post(&q.send, q, "ibv_post_send", unsafe.Pointer(w))
}

func (l *library) PostRecv(q *QP, w *RecvWR) error {
	return post(&q.recv, q, "ibv_post_recv", unsafe.Pointer(w))
}

func post(f *dl.Frame, q *QP, name string, w unsafe.Pointer) error {
	f.Args[0], f.Args[1], f.Args[2] = q.Handle, uintptr(w), uintptr(unsafe.Pointer(&q.bad))
	f.Call()
	runtime.KeepAlive(w)
	if n := int32(f.Result); n != 0 {
		return &Error{name, syscall.Errno(max(n, -n))}
	}
	return nil
}

// Send has w send the memory of s. Both must stay where they are until the work is completed.
func (w *SendWR) Send(s *SGE) { w.SGList, w.NumSGE = uintptr(unsafe.Pointer(s)), 1 }

// Then has next be posted with w, after it; nil for none.
func (w *SendWR) Then(next *SendWR) { w.Next = uintptr(unsafe.Pointer(next)) }
