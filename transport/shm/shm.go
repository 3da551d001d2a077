// Package shm is the transport between ranks that are processes of one host. It is for
// package paths. A connection is a fifo queue in memory that both processes map: a
// memfd, or an unlinked file in a directory such as /dev/shm. Only making and closing a
// connection go through the kernel; messages do not, unless an end sleeps on a futex.
//
// A listening rank has a unix socket in the abstract namespace. To dial it, a
// rank allocates the memory, proves over the socket that it knows the key of
// the communicator, and passes the descriptor (SCM_RIGHTS). The socket stays
// open: if it breaks without goodbye the peer has died, and all waits end.
//
// A memfd is sealed against shrinking, and its pages come when messages first touch them, so a queue that carries
// little takes little; the free memory of container and machine is checked when a queue is made. A file in a
// directory is allocated to the last page before it is mapped (fallocate). So a lack of memory is an error and not
// SIGBUS, except for a memfd where the system counts memory strictly (vm.overcommit_memory 2).
//
// The trap: Close of a Transport unmaps the memory, so no goroutine may use a slot any
// more. The package is for Linux; on other systems Listen returns an error.
package shm

import (
	"errors"
	"log/slog"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/transport"
)

// Options are the choices of shm.
type Options struct {
	// Dir is a directory in memory (tmpfs), such as /dev/shm, for the files of
	// queues; "" is for memfd, which needs no directory and has no limit but the
	// memory of the host or container.
	Dir string
	// Queues is how many queues this rank is going to dial. Listen checks that Dir has
	// room for them. 0 means 1.
	Queues int
}

// Name is "shm".
func (t *Transport) Name() string { return "shm" }

// Reach is nil if both ranks are on one host.
func (t *Transport) Reach(a, b transport.Info) error {
	if a.Host != b.Host {
		return errors.New("shm: different hosts")
	}
	return nil
}

func withDefaults(cfg transport.Config) transport.Config {
	if cfg.Guard == nil {
		cfg.Guard = new(fifo.Guard)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return cfg
}

func geometry(l transport.Limits) fifo.Geometry {
	return fifo.Geometry{Slots: l.Slots, SlotBytes: l.SlotBytes}
}
