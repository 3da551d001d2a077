// Package ibverbs is libibverbs, the user's side of RDMA hardware, without cgo: its
// functions under their own names and its structures with C's layout. It is for package
// transport/verbs.
//
// The library is opened when Open is first called. Verbs is an interface, so that tests
// can stand in for it.
//
// The trap: a structure that is given to PostSend, PostRecv or PollCQ must lie on the
// heap, and what it points to must stay where it is until its work is completed.
package ibverbs

import (
	"fmt"
	"syscall"

	"github.com/ringo-go/ringo/internal/dl"
)

// Verbs are the functions of libibverbs that Ringo uses. Objects may be used by several
// goroutines, except that one at a time posts to a queue pair and one at a time looks
// at a completion queue.
type Verbs interface {
	// GetDeviceList is the names of the devices, none where the kernel has no RDMA.
	GetDeviceList() ([]string, error)
	OpenDevice(name string) (*Context, error)
	CloseDevice(c *Context) error
	QueryDevice(c *Context) (DeviceAttr, error)
	QueryPort(c *Context, port int) (PortAttr, error)
	// QueryGID is an entry of a port's table, and its type; the zero GID is an empty
	// entry. Where only the type cannot be read the GID comes with the error.
	QueryGID(c *Context, port, index int) (GID, GIDType, error)
	// GetAsyncEvent waits for the next event of a device; after StopAsyncEvents it is an
	// error.
	GetAsyncEvent(c *Context) (Event, error)
	StopAsyncEvents(c *Context)

	AllocPD(c *Context) (*PD, error)
	DeallocPD(p *PD) error
	// RegMR pins n bytes at addr, which stay the caller's, for the access flags.
	RegMR(p *PD, addr uintptr, n int, access int) (*MR, error)
	// RegDMABufMR does the same with n bytes from offset of a dma-buf, memory of another
	// device: work requests then call their first byte iova. fd may be closed afterwards.
	// Libraries before rdma-core 34 and kernels before 5.12 cannot.
	RegDMABufMR(p *PD, offset uint64, n int, iova uint64, fd int, access int) (*MR, error)
	DeregMR(m *MR) error

	// CreateCQ makes a completion queue with a channel of its own.
	CreateCQ(c *Context, entries int) (*CQ, error)
	DestroyCQ(q *CQ) error
	// ReqNotifyCQ has the next completion make FD of the queue readable.
	ReqNotifyCQ(q *CQ) error
	// GetCQEvent takes one event from the queue's channel, false if there is none; it does not wait.
	GetCQEvent(q *CQ) bool
	// PollCQ takes up to len(into) completions, and returns their number.
	PollCQ(q *CQ, into []WC) (int, error)

	// CreateQP makes a reliable connected queue pair whose work is completed in q.
	CreateQP(p *PD, q *CQ, c QPCap) (*QP, error)
	ModifyQP(q *QP, a *QPAttr, mask int) error
	DestroyQP(q *QP) error
	PostSend(q *QP, w *SendWR) error
	PostRecv(q *QP, w *RecvWR) error
}

// A Context is an open device.
type Context struct {
	Name   string
	Handle uintptr
	events any // what StopAsyncEvents ends
}

// A PD is a protection domain: a queue pair reaches only memory of its own domain.
type PD struct {
	Context *Context
	Handle  uintptr
}

// An MR is registered memory.
type MR struct {
	Handle     uintptr
	LKey, RKey uint32
}

// A CQ is a completion queue.
type CQ struct {
	Context *Context
	Handle  uintptr
	FD      int // readable after a completion that ReqNotifyCQ has asked for; -1 where there is none
	channel uintptr

	poll, notify, event, ack dl.Frame
	from, context            uintptr // of an event
}

// A QP is a queue pair.
type QP struct {
	Handle uintptr
	Num    uint32
	Inline int // bytes that can be sent inline

	send, recv dl.Frame
	bad        uintptr
}

// An Error is a failed call.
type Error struct {
	Call  string
	Errno syscall.Errno
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Call, e.Errno) }

func (e *Error) Unwrap() error { return e.Errno }
