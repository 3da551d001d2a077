//go:build cgo && linux && (amd64 || arm64)

package main

// #include <stdlib.h>
// #include "ringo.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
	"unsafe"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/cmd/libnccl/capi"
	"github.com/ringo-go/ringo/cmd/libnccl/host"
)

// The functions of ringo.h.

var (
	hostComms    = capi.Table[*hostComm]{What: "communicator"}
	hostPendings = capi.Table[host.Pending]{What: "operation under way"}
	hostMails    = capi.Table[*host.Mail]{What: "mail"}
)

// A hostComm is a communicator of ringo.h, with its part in the answers of RAS.
type hostComm struct {
	*ringo.Comm
	watch *capi.Watch
}

// attempt carries out f, stores the error's sentence in *to, and returns the error's result.
func attempt(to **C.char, f func() error) (result C.int) {
	defer func() {
		if p := recover(); p != nil {
			result = hostResult(to, fmt.Errorf("libnccl: a fault of the library's own: %v\n%s", p, debug.Stack()))
		}
	}()
	readFiles()
	return hostResult(to, f())
}

func hostResult(to **C.char, err error) C.int {
	r := host.ResultOf(err)
	if to != nil && r != host.OK && r != host.InProgress {
		*to = C.CString(err.Error())
	}
	return C.int(r)
}

// hold gives the value that f makes a handle, and stores that in *to.
func hold[T any](t *capi.Table[T], to *C.uintptr_t, f func() (T, error)) error {
	if to == nil {
		return fmt.Errorf("%w: the handle's place is null", ringo.ErrInvalid)
	}
	v, err := f()
	if err == nil {
		*to = C.uintptr_t(t.Add(v))
	}
	return err
}

// hostID reads an ID.
func hostID(id *C.char) (bootstrap.ID, error) {
	if id == nil {
		return bootstrap.ID{}, fmt.Errorf("%w: id is null", ringo.ErrInvalid)
	}
	return *(*bootstrap.ID)(unsafe.Pointer(id)), nil
}

//export go_host_new_id
func go_host_new_id(address, id *C.char, failure **C.char) C.int {
	return attempt(failure, func() error {
		if id == nil {
			return fmt.Errorf("%w: id is null", ringo.ErrInvalid)
		}
		refresh()
		made, err := ringo.NewID(C.GoString(address))
		*(*bootstrap.ID)(unsafe.Pointer(id)) = made
		return err
	})
}

//export go_host_open
func go_host_open(id *C.char, rank, size C.int, timeout C.int64_t, comm *C.uintptr_t, failure **C.char) C.int {
	return attempt(failure, func() error {
		return hold(&hostComms, comm, func() (*hostComm, error) {
			id, err := hostID(id)
			if err != nil {
				return nil, err
			}
			refresh()
			cfg := host.Config(id, int(rank), int(size), time.Duration(timeout))
			watch := lib.Watch(&cfg)
			c, err := ringo.Open(context.Background(), cfg)
			if err != nil {
				watch.End()
				return nil, err
			}
			watch.Opened(c)
			return &hostComm{c, watch}, nil
		})
	})
}

// hostCall reads a call.
func hostCall(h C.uintptr_t, x *C.ringo_host_call) (*hostComm, *ringo.Call, error) {
	c, err := hostComms.Get(uintptr(h))
	if err == nil && x == nil {
		err = fmt.Errorf("%w: call is null", ringo.ErrInvalid)
	}
	if err != nil {
		return nil, nil, err
	}
	counts := func(p *C.int64_t) (list []int) {
		if p != nil {
			for _, n := range unsafe.Slice(p, c.Size()) {
				list = append(list, int(n))
			}
		}
		return list
	}
	given := host.Call{
		Kind: int(x.kind), Type: int(x._type), Op: int(x.op), Peer: int(x.peer), In: uintptr(x.in), Out: uintptr(x.out),
		Count:    int(x.count),
		InCounts: counts(x.in_counts), OutCounts: counts(x.out_counts), Timeout: time.Duration(x.timeout),
	}
	call, err := given.Of(c.Comm)
	if err == nil {
		c.watch.Called(call.Kind)
	}
	return c, call, err
}

//export go_host_do
func go_host_do(comm C.uintptr_t, x *C.ringo_host_call, failure **C.char) C.int {
	return attempt(failure, func() error {
		c, call, err := hostCall(comm, x)
		if err != nil {
			return err
		}
		return c.Do(call)
	})
}

//export go_host_start
func go_host_start(comm C.uintptr_t, x *C.ringo_host_call, pending *C.uintptr_t, failure **C.char) C.int {
	return attempt(failure, func() error {
		return hold(&hostPendings, pending, func() (host.Pending, error) {
			c, call, err := hostCall(comm, x)
			if err != nil {
				return nil, err
			}
			return c.Start(call), nil
		})
	})
}

//export go_host_wait
func go_host_wait(pending C.uintptr_t, timeout C.int64_t, source *C.int, failure **C.char) C.int {
	return attempt(failure, func() error {
		p, err := hostPendings.Get(uintptr(pending))
		if err != nil {
			return err
		}
		if err = host.WaitFor(p, time.Duration(timeout)); errors.Is(err, host.ErrInProgress) {
			return err
		}
		if m, ok := p.(*host.Message); ok && source != nil {
			*source = C.int(m.Source)
		}
		_, _ = hostPendings.Take(uintptr(pending))
		return err
	})
}

//export go_host_failure
func go_host_failure(comm C.uintptr_t, failure **C.char) C.int {
	return attempt(failure, func() error {
		c, err := hostComms.Get(uintptr(comm))
		if err != nil {
			return err
		}
		return c.Failure()
	})
}

//export go_host_abort
func go_host_abort(comm C.uintptr_t, reason *C.char, failure **C.char) C.int {
	return attempt(failure, func() error {
		c, err := hostComms.Get(uintptr(comm))
		if err == nil {
			c.watch.Aborts()
			c.Abort(errors.New(C.GoString(reason)))
		}
		return err
	})
}

//export go_host_close
func go_host_close(comm C.uintptr_t, failure **C.char) C.int {
	return attempt(failure, func() error {
		c, err := hostComms.Take(uintptr(comm))
		if err != nil {
			return err
		}
		c.watch.Closes()
		defer c.watch.End()
		return c.Close()
	})
}

//export go_host_mail_open
func go_host_mail_open(comm C.uintptr_t, mail *C.uintptr_t, failure **C.char) C.int {
	return attempt(failure, func() error {
		return hold(&hostMails, mail, func() (*host.Mail, error) {
			c, err := hostComms.Get(uintptr(comm))
			if err != nil {
				return nil, err
			}
			return host.NewMail(c.Comm), nil
		})
	})
}

//export go_host_mail_line
func go_host_mail_line(mail C.uintptr_t, peer C.int, id *C.char, out C.int, failure **C.char) C.int {
	return attempt(failure, func() error {
		m, err := hostMails.Get(uintptr(mail))
		if err != nil {
			return err
		}
		at, err := hostID(id)
		switch {
		case err != nil:
			return err
		case out != 0:
			return m.To(int(peer), at)
		}
		return m.From(int(peer), at)
	})
}

//export go_host_mail_move
func go_host_mail_move(mail C.uintptr_t, peer C.int, tag C.int64_t, data C.uintptr_t, bytes C.size_t, out C.int,
	pending *C.uintptr_t, failure **C.char) C.int {
	return attempt(failure, func() error {
		return hold(&hostPendings, pending, func() (host.Pending, error) {
			m, err := hostMails.Get(uintptr(mail))
			if err != nil {
				return nil, err
			}
			move := m.Recv
			if out != 0 {
				move = m.Send
			}
			return move(int(peer), int64(tag), uintptr(data), int(bytes))
		})
	})
}

//export go_host_mail_close
func go_host_mail_close(mail C.uintptr_t, failure **C.char) C.int {
	return attempt(failure, func() error {
		m, err := hostMails.Take(uintptr(mail))
		if err == nil {
			m.Close()
		}
		return err
	})
}
