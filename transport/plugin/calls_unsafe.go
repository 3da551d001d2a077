package plugin

import (
	"unsafe"

	"github.com/ringo-go/ringo/internal/dl"
)

// handleBytes is the size of the handle by which a plugin finds a listener.
const handleBytes = 128

// A caller calls a plugin's functions: for a library, a context, or one comm. A caller is on
// Go's heap, since C writes into it, and serves many calls, so that a call allocates
// nothing. One goroutine at a time may use it.
type caller struct {
	frame dl.Frame
	table *table
	ctx   uintptr // of the communicator, since version 11
	dev   int
	comm  uintptr

	// What C reads and writes.
	handle  [handleBytes]byte // a plugin keeps the state of a connect in it
	out     uintptr
	device  uintptr // 0 before each call, ignored after: Ringo offloads nothing to the device
	number  int32
	size    int32
	tag     int32
	config  int32 // ncclNetCommConfig_t: no traffic class is asked for
	data    uintptr
	bytes   uint64
	mrs     uintptr
	phandle uintptr // stays 0: nothing is profiled
	props   [64]uint64
}

const noTrafficClass = -1

func newCaller(t *table, ctx uintptr, dev int) *caller {
	return &caller{table: t, ctx: ctx, dev: dev, config: noTrafficClass}
}

func addr[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// call calls a function. The outputs are 0 before the call, and 0 again if it failed.
func (c *caller) call(f int, args ...uintptr) Result {
	c.frame.Fn = c.table.fn[f]
	copy(c.frame.Args[:], args)
	c.out, c.device = 0, 0
	c.frame.Call()
	r := Result(int32(c.frame.Result))
	if r != 0 {
		c.out = 0
	}
	return r
}

// init starts the plugin, since version 11 for one communicator, whose context it sets.
func (c *caller) init(id uint64) Result {
	switch c.table.version {
	case 8, 9:
		return c.call(fnInit, c.table.voice.function)
	case 10:
		return c.call(fnInit, c.table.voice.function, profiler())
	}
	r := c.call(fnInit, addr(&c.out), uintptr(id), addr(&c.config), c.table.voice.function, profiler())
	c.ctx = c.out
	return r
}

// finalize ends the context of a communicator.
func (c *caller) finalize() Result {
	if c.table.fn[fnFinalize] == 0 {
		return 0
	}
	return c.call(fnFinalize, c.ctx)
}

// devices is the number of the plugin's devices.
func (c *caller) devices() (int, Result) {
	r := c.call(fnDevices, addr(&c.number))
	return int(c.number), r
}

func (c *caller) properties(dev int) (Device, Result) {
	c.props = [len(c.props)]uint64{}
	if r := c.call(fnGetProperties, uintptr(dev), addr(&c.props)); r != 0 {
		return Device{Index: dev}, r
	}
	return c.table.device(dev, unsafe.Pointer(&c.props)), 0
}

// listen makes a listener, whose handle is then in c.handle.
func (c *caller) listen() Result {
	var r Result
	if c.table.version >= 11 {
		r = c.call(fnListen, c.ctx, uintptr(c.dev), addr(&c.handle), addr(&c.out))
	} else {
		r = c.call(fnListen, uintptr(c.dev), addr(&c.handle), addr(&c.out))
	}
	c.comm = c.out
	return r
}

// connect tries to connect to c.handle. While c.comm is 0 it is to be called again.
func (c *caller) connect() Result {
	var r Result
	switch c.table.version {
	case 8, 9:
		r = c.call(fnConnect, uintptr(c.dev), addr(&c.handle), addr(&c.out), addr(&c.device))
	case 10:
		r = c.call(fnConnect, uintptr(c.dev), addr(&c.config), addr(&c.handle), addr(&c.out), addr(&c.device))
	default:
		r = c.call(fnConnect, c.ctx, uintptr(c.dev), addr(&c.handle), addr(&c.out), addr(&c.device))
	}
	c.comm = c.out
	return r
}

// accept tries to accept a connection of a listener. While c.comm is 0 it is to be called
// again.
func (c *caller) accept(listener uintptr) Result {
	r := c.call(fnAccept, listener, addr(&c.out), addr(&c.device))
	c.comm = c.out
	return r
}

// A registered is registered memory, or a part of it.
type registered struct {
	data uintptr
	n    int
	mr   uintptr // what the plugin calls the registration
}

// register registers memory of a kind with c.comm.
func (c *caller) register(data uintptr, n int, kind int) (mr uintptr, r Result) {
	r = c.call(fnRegMr, c.comm, data, uintptr(n), uintptr(kind), addr(&c.out))
	return c.out, r
}

// registerDMABuf registers memory of a GPU by the file and the offset in it where its pages are.
func (c *caller) registerDMABuf(data uintptr, n int, offset uint64, fd int) (mr uintptr, r Result) {
	r = c.call(fnRegMrDmaBuf, c.comm, data, uintptr(n), deviceMemory, uintptr(offset), uintptr(fd), addr(&c.out))
	return c.out, r
}

func (c *caller) deregister(mr uintptr) Result { return c.call(fnDeregMr, c.comm, mr) }

// isend begins to send s. A request of 0 means: not yet, try again.
func (c *caller) isend(s registered) (request uintptr, r Result) {
	if c.table.version >= 10 {
		r = c.call(fnIsend, c.comm, s.data, uintptr(s.n), 0, s.mr, 0, addr(&c.out))
	} else {
		r = c.call(fnIsend, c.comm, s.data, uintptr(s.n), 0, s.mr, addr(&c.out))
	}
	return c.out, r
}

// irecv begins to receive at most s.n bytes into s. A request of 0 means: not yet, try again. Each
// call is for one receive, as any plugin's maxRecvs allows.
func (c *caller) irecv(s registered) (request uintptr, r Result) {
	c.data, c.bytes, c.mrs, c.tag, c.size = s.data, uint64(s.n), s.mr, 0, int32(s.n)
	sizes := addr(&c.bytes) // size_t
	if c.table.version == 8 {
		sizes = addr(&c.size) // int
	}
	if c.table.version >= 10 {
		r = c.call(fnIrecv, c.comm, 1, addr(&c.data), sizes, addr(&c.tag), addr(&c.mrs), addr(&c.phandle), addr(&c.out))
	} else {
		r = c.call(fnIrecv, c.comm, 1, addr(&c.data), sizes, addr(&c.tag), addr(&c.mrs), addr(&c.out))
	}
	return c.out, r
}

// iflush makes the data that were received into s visible to the GPU, whose memory s is. A request
// of 0 means that they are visible already.
func (c *caller) iflush(s registered) (request uintptr, r Result) {
	c.data, c.mrs, c.size = s.data, s.mr, int32(s.n)
	r = c.call(fnIflush, c.comm, 1, addr(&c.data), addr(&c.size), addr(&c.mrs), addr(&c.out))
	return c.out, r
}

// test asks whether a request is done, and how many bytes it moved.
func (c *caller) test(request uintptr) (done bool, n int, r Result) {
	c.number, c.size = 0, -1
	r = c.call(fnTest, request, addr(&c.number), addr(&c.size))
	return c.number != 0, int(c.size), r
}

// close closes c.comm by function f: fnCloseSend, fnCloseRecv or fnCloseListen.
func (c *caller) close(f int) Result { return c.call(f, c.comm) }
