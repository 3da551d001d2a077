// Package host has the functions of ringo.h in Go: communicators on host memory by handles, for
// programs in other languages. It is part of libnccl.so.2; nothing here is promised to other modules.
//
// The package translates to calls of a ringo.Comm. Mail adds messages with tags and from any
// source, which ringo lacks. The trap: memory of a call is C's, and has to stay until the call has ended.
package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
)

// A Result is a ringo_host_result.
type Result int

// The results of ringo.h.
const (
	OK Result = iota
	InProgress
	Invalid
	Timeout
	Failed
)

// ErrInProgress is the error of a wait whose time was over before the operation's end.
var ErrInProgress = errors.New("in progress")

// ResultOf is the result of an error. Results exist for the errors that a program may want to tell apart.
func ResultOf(err error) Result {
	switch {
	case err == nil:
		return OK
	case errors.Is(err, ErrInProgress):
		return InProgress
	case errors.Is(err, ringo.ErrInvalid), errors.Is(err, ringo.ErrUnsupported):
		return Invalid
	case errors.Is(err, ringo.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return Timeout
	}
	return Failed
}

// A Pending is an operation under way.
type Pending interface {
	Done() <-chan struct{}
	Wait() error
}

// Config is the configuration of a rank. timeout bounds the meeting and the waits; 0 is the default of each. Who gives
// the waits' default, as torch does for every group, has not chosen it, and RINGO_TIMEOUT may.
func Config(id bootstrap.ID, rank, size int, timeout time.Duration) ringo.Config {
	cfg := ringo.Config{ID: &id, Rank: rank, Size: size, Timeout: timeout, JoinTimeout: timeout}
	if timeout == ringo.DefaultTimeout {
		cfg.Timeout = 0
	}
	return cfg
}

// ops are the operators by their numbers in ringo.h.
var ops = [...]ringo.RedOp{ringo.Sum, ringo.Prod, ringo.Max, ringo.Min, ringo.Avg, ringo.BitAnd,
	ringo.BitOr, ringo.BitXor}

// A Call is a ringo_host_call.
type Call struct {
	Kind, Type, Op, Peer int
	In, Out              uintptr
	Count                int
	InCounts, OutCounts  []int
	Timeout              time.Duration
}

// Of is the call as c carries it out.
func (x *Call) Of(c *ringo.Comm) (*ringo.Call, error) {
	call := &ringo.Call{
		Kind: ringo.Kind(x.Kind), Type: ringo.DataType(x.Type), Count: x.Count, Root: x.Peer, Peer: x.Peer,
		Timeout:  x.Timeout,
		InCounts: x.InCounts, OutCounts: x.OutCounts,
	}
	switch {
	case x.Kind < int(ringo.KindBarrier) || x.Kind > int(ringo.KindAlltoAllv):
		return nil, fmt.Errorf("%w: kind %d", ringo.ErrInvalid, x.Kind)
	case x.Op < 0 || x.Op >= len(ops):
		return nil, fmt.Errorf("%w: operator %d", ringo.ErrInvalid, x.Op)
	case call.Kind != ringo.KindBarrier && (x.Type < int(ringo.Int8) || x.Type > int(ringo.Float8E5M2)):
		return nil, fmt.Errorf("%w: type %d", ringo.ErrInvalid, x.Type)
	case x.Count < 0:
		return nil, fmt.Errorf("%w: count %d", ringo.ErrInvalid, x.Count)
	case call.Kind.Variable() && (len(x.OutCounts) == 0 || call.Kind == ringo.KindAlltoAllv && len(x.InCounts) == 0):
		return nil, fmt.Errorf("%w: no counts", ringo.ErrInvalid)
	case call.Kind == ringo.KindBarrier:
		return call, nil
	}
	if call.Kind.Reduces() {
		call.Op = ops[x.Op]
	}
	in, out := call.Shape(c.Rank(), c.Size())
	call.In, call.Out = memory(x.In, in*call.Type.Size()), memory(x.Out, out*call.Type.Size())
	return call, nil
}

// WaitFor waits for the end of p, at most timeout; below 0 without a limit. The error is p's, or ErrInProgress.
func WaitFor(p Pending, timeout time.Duration) error {
	if timeout < 0 {
		return p.Wait()
	}
	select {
	case <-p.Done():
		return p.Wait()
	default:
	}
	if timeout == 0 {
		return ErrInProgress
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.Done():
		return p.Wait()
	case <-timer.C:
		return ErrInProgress
	}
}
