// Package transport defines what moves slots between ranks: a Transport makes one-way
// connections, each a bounded queue. It is for package paths and for writers of
// transports. A transport knows nothing of collectives.
//
// The trap: one goroutine at a time may use an end of a connection; only Close may be
// called from any. Package transporttest checks an implementation.
package transport

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/mem"
)

// A Stamp travels with every slot and names the call it belongs to. It is
// opaque here; the receiver compares it with its own.
type Stamp = fifo.Stamp

// A SendConn is the sending end of a one-way connection: a bounded queue of
// slots. One goroutine at a time may use it; Close may be called from any.
// After Close, and after the Guard of the connection has ended, every blocked
// and every later call returns an error.
type SendConn interface {
	// Reserve waits for a free slot and returns n bytes of its memory, at most
	// SlotBytes of Limits, to be filled by the caller. The content is undefined.
	Reserve(n int) (mem.Region, error)
	// Publish hands the reserved slot to the receiver. It does not wait for it.
	Publish(s Stamp) error
	Close() error
}

// A RecvConn is the receiving end. One goroutine at a time may use it; Close
// may be called from any.
type RecvConn interface {
	// Next waits for the next slot and returns its bytes, which stay valid and
	// unchanged until Release.
	Next() (mem.Region, Stamp, error)
	// Release gives the slot of the last Next back to the sender.
	Release() error
	Close() error
}

// ErrClosed means that this end was closed, or that the peer has closed its end
// or all its connections. It is what every call on the connection returns then, and
// what Dial returns where the peer does not listen any more. Dial cannot tell a peer
// that has closed from one that has died.
var ErrClosed = fifo.ErrClosed

// ErrHeld is among the errors of a transport's Close if its network may still read and write registered memory. The
// caller must then keep that memory until the process ends.
var ErrHeld = errors.New("the network may still use registered memory, which is kept")

// A LengthError is a slot of another length than the receiver expects: the two
// ranks are at different calls.
type LengthError struct{ Got, Want int }

func (e *LengthError) Error() string {
	return fmt.Sprintf("slot of %d bytes where one of %d was expected", e.Got, e.Want)
}

// Into is implemented by some RecvConns: they receive the payload of the next slot
// straight into the caller's memory, without Next and Release.
type Into interface {
	// NextInto waits for the next slot and moves its payload into dst. A slot
	// whose length is not dst's is a *LengthError, which comes with the stamp of
	// that slot.
	NextInto(dst mem.Region) (Stamp, error)
}

// From is implemented by some SendConns: they send a slot straight from the caller's
// memory, without Reserve and Publish.
type From interface {
	// PublishFrom waits for a free slot and sends src, at most SlotBytes of
	// Limits, as its payload. src must not change until Flush has returned.
	PublishFrom(src mem.Region, s Stamp) error
	// Flush waits until the receiver has taken all that PublishFrom sent.
	Flush() error
}

// FreeSlots is implemented by SendConns that know how full their queue is.
type FreeSlots interface {
	// Free is how many slots can be reserved and published now without waiting
	// for the receiver, at most Slots of Limits. It belongs to the goroutine that
	// sends.
	Free() int
}

// Limits are the dimensions of all queues of a communicator.
type Limits struct {
	SlotBytes int // payload of a slot, at most
	Slots     int // slots of a queue, ≥ 2
}

// Info is what one rank tells all others about itself before any connection.
type Info struct {
	Rank    int
	Host    string // identity of the node; equal strings share memory and kernel
	Process string // identity of the process; equal strings share an address space
}

// Config is what a transport needs of its communicator.
type Config struct {
	Self   Info
	Key    []byte // secret of the communicator; both ends of a connection prove they know it
	Limits Limits
	Guard  *fifo.Guard         // ends every wait of every connection
	Left   func(rank int) bool // whether a rank has said goodbye and dials no more; nil: nobody has
	Spin   bool                // there is a core for every rank of this host: waits may spin before they yield
	Log    *slog.Logger

	// Linger is how long Close waits for a live peer that takes none of the slots which this rank still has
	// to deliver; then Close returns an error that names the loss. 0 is a second, and no error.
	Linger time.Duration
}

// A Transport is one way to move slots, opened by one rank for one
// communicator. Dial and Accept may be called from several goroutines.
type Transport interface {
	// Name is the name in options, logs and errors: "shm".
	Name() string
	// Listen gets ready for peers and returns the address that they pass to Dial. An
	// error says why this rank cannot use the transport, and the remedy. Listen tries
	// what connections will need (memory, permissions), so that it fails before the
	// ranks agree on a transport and not after.
	Listen() (addr []byte, err error)
	// Reach is the reason why the two ranks cannot be connected this way, nil if
	// they can. It is pure and symmetric.
	Reach(a, b Info) error
	// Dial makes the sending end of a connection to peer, which listens at addr. Errors:
	// ErrClosed if nobody listens there, the Guard's, or those of the system.
	Dial(peer Info, addr []byte) (SendConn, error)
	// Accept waits until peer has dialled and returns the receiving end. Errors: the
	// Guard's, or ErrClosed after Close and where peer has left without a dial.
	Accept(peer Info) (RecvConn, error)
	// Close ends all connections and releases their memory and descriptors.
	Close() error
}
