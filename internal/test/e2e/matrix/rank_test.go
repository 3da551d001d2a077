//go:build unix

package matrix

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/mem"
)

// errReason is why a rank aborts.
var errReason = errors.New("it is enough")

// A rank does as it is told, a line at a time, and says what came of it, as the programs in C do:
//
//	do OP        "in" as soon as it waits in the operation, then "done RESULT"
//	on           an operation that waits for it goes on
//	watch        "fell RESULT" as soon as its communicator has failed
//	end HOW      Close or Abort, and "ended RESULT"
//	close        "closed RESULT", the last word
type rank struct {
	c   *ringo.Comm
	d   *gpu.Device // nil on host memory
	say func(format string, args ...any)

	on    chan struct{} // the test has said so
	graph *gpu.Graph
	stop  chan struct{}  // closed at the end
	tasks sync.WaitGroup // that the rank has begun
	after []func() error // what gives things back, last first
}

func newRank(c *ringo.Comm, d *gpu.Device, say func(string, ...any)) *rank {
	return &rank{c: c, d: d, say: say, on: make(chan struct{}, 1), stop: make(chan struct{})}
}

// obey carries out a command, and reports whether more may follow.
func (r *rank) obey(command string) bool {
	what, of, _ := strings.Cut(command, " ")
	switch what {
	case "do":
		r.tasks.Go(func() {
			over := make(chan struct{})
			r.tasks.Go(func() { r.tellIn(of, over) })
			err := r.do(of)
			close(over)
			r.say("done %s", result(err))
		})
	case "on":
		r.on <- struct{}{}
	case "watch":
		r.tasks.Go(r.watch)
	case "end":
		if of == "Abort" {
			r.c.Abort(errReason)
			r.say("ended well")
		} else {
			r.say("ended %s", result(r.c.Close()))
		}
	case "close":
		r.say("closed %s", result(r.close()))
		return false
	}
	return true
}

// close ends the rank.
func (r *rank) close() error {
	err := r.c.Close()
	close(r.stop)
	r.tasks.Wait()
	for _, f := range slices.Backward(r.after) {
		err = errors.Join(err, f())
	}
	return err
}

// waits are the functions on the stack of a rank that waits in a method which all ranks call.
var waits = map[string]string{"Split": "life.(*Life).Meet(", "Shrink": ").Regroup(", "Register": "life.(*Life).Meet("}

// tellIn says when the rank waits in an operation: the stack of one of its goroutines has the function.
func (r *rank) tellIn(op string, over <-chan struct{}) {
	functions := []string{"ringo.(*Comm).Do(", "ringo.(*Comm).Synchronize("}
	if f := waits[op]; f != "" {
		functions = []string{f}
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	stacks := make([]byte, 1<<20)
	for {
		now := string(stacks[:runtime.Stack(stacks, true)])
		if op != "capture" && slices.ContainsFunc(functions, func(f string) bool { return strings.Contains(now, f) }) {
			// else it says so itself
			r.say("in")
			return
		}
		select {
		case <-over:
			return
		case <-tick.C:
		}
	}
}

// watch waits until the communicator has failed.
func (r *rank) watch() {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for r.c.Err() == nil {
		select {
		case <-r.stop:
			return
		case <-tick.C:
		}
	}
	r.say("fell %s", result(r.c.Err()))
}

// do carries out this rank's part of an operation of rank 0 with rank 1, or with all.
func (r *rank) do(op string) error {
	switch op {
	case "all to all":
		return r.call(&ringo.Call{Kind: ringo.KindAlltoAll, Count: 1}, 12)
	case "AllReduce 8 B", "first connection":
		return r.call(allReduce, 8)
	case "AllReduce 1 MiB":
		return r.call(allReduce, 1<<20)
	case "Recv", "Send": // so much fits into no queue
		size := 64 << 20
		if r.d != nil {
			size = 16 << 20
		}
		kind := ringo.KindRecv
		if (op == "Send") == (r.c.Rank() == 0) {
			kind = ringo.KindSend
		}
		if r.c.Rank() > 1 {
			return nil
		}
		return r.call(&ringo.Call{Kind: kind, Peer: 1 - r.c.Rank()}, size)
	case "Split":
		part, err := r.c.Split(context.Background(), 0, 0)
		if err == nil {
			err = part.Close()
		}
		return err
	case "Shrink":
		next, err := r.c.Shrink(context.Background())
		if err == nil {
			err = errors.Join(errOf(next.Size()), next.Close())
		}
		return err
	}
	return r.doOnGPU(op)
}

var allReduce = &ringo.Call{Kind: ringo.KindAllReduce, Op: ringo.Sum}

// An errOf is no error: the new communicator has so many ranks.
type errOf int

func (n errOf) Error() string { return fmt.Sprintf("goes on with %d ranks", int(n)) }

func (r *rank) doOnGPU(op string) error {
	switch op {
	case "Register":
		x, err := r.memory(1 << 20)
		if err != nil {
			return err
		}
		w, err := r.c.Register(x)
		if err == nil {
			r.after = append(r.after, w.Close)
		}
		return err
	case "capture":
		return r.capture(func() {
			r.say("in")
			<-r.on
		})
	case "graph": // for "replay"
		return r.capture(func() {})
	case "replay":
		return errors.Join(r.graph.Launch(0), r.c.Synchronize(0))
	}
	return fmt.Errorf("no operation is called %q", op)
}

// capture captures an all-reduce behind a function, and carries it out.
func (r *rank) capture(before func()) error {
	s, err := r.d.NewStream()
	if err != nil {
		return err
	}
	r.after = append(r.after, func() error { return r.d.DestroyStream(s) })
	x, err := r.memory(1 << 20)
	if err != nil {
		return err
	}
	c := over(allReduce, x)
	c.Stream = s
	if r.graph, err = r.d.Capture(s, func() error {
		before()
		return r.c.Do(&c)
	}); err != nil {
		return err
	}
	r.after = append(r.after, r.graph.Close)
	return errors.Join(r.graph.Launch(s), r.c.Synchronize(s))
}

// call carries out a call on n bytes of new memory.
func (r *rank) call(c *ringo.Call, n int) error {
	x, err := r.memory(n)
	if err != nil {
		return err
	}
	of := over(c, x)
	if err := r.c.Do(&of); err != nil || r.d == nil {
		return err
	}
	return r.c.Synchronize(0)
}

// over is a call whose memory is x.
func over(c *ringo.Call, x ringo.Region) ringo.Call {
	of := *c
	of.Type, of.In, of.Out = ringo.Int32, x, x
	if of.Count == 0 {
		of.Count = x.Len() / 4
	}
	switch of.Kind {
	case ringo.KindSend:
		of.Out = ringo.Region{}
	case ringo.KindRecv:
		of.In = ringo.Region{}
	}
	return of
}

// memory is the rank's until its end.
func (r *rank) memory(n int) (ringo.Region, error) {
	if r.d == nil {
		return mem.Host(make([]byte, n)), nil
	}
	x, err := r.d.AllocMapped(n)
	if err != nil {
		return x, err
	}
	r.after = append(r.after, func() error { return r.d.Free(x) })
	return x, r.d.Write(x, make([]byte, n))
}

// result is an error in a few words.
func result(err error) string {
	var e *ringo.Error
	said := "well"
	switch size, ok := errors.AsType[errOf](err); {
	case err == nil:
		return said
	case ok:
		return size.Error()
	case errors.Is(err, ringo.ErrExcluded):
		said = "excluded"
	case errors.Is(err, ringo.ErrLeft):
		said = "left"
	case errors.Is(err, ringo.ErrTimeout):
		said = "timed out"
	case strings.Contains(err.Error(), errReason.Error()):
		said = "aborted"
	case strings.Contains(err.Error(), "rank 1 died"):
		said = "died"
	default:
		said = strings.ReplaceAll(err.Error(), "\n", " ")
	}
	if errors.As(err, &e) && !slices.Equal(e.Culprits, []int{1}) {
		said += fmt.Sprintf(" by %v", e.Culprits)
	}
	return said
}

// emulated are the GPUs. Kernels may wait for a rank that is stopped, on a machine that is busy.
var emulated = cudaemu.Config{Devices: ranks, Stall: 5 * time.Minute}

// open opens this process's rank.
func open() (*ringo.Comm, *gpu.Device, error) {
	if os.Getenv("RINGO_TEST_GPU") == "" {
		c, err := ringo.OpenEnv(context.Background(), ringo.Config{})
		return c, nil, err
	}
	driver, err := cudaemu.New(emulated)
	if err != nil {
		return nil, nil, err
	}
	m, err := gpu.Of(driver)
	if err != nil {
		return nil, nil, err
	}
	d, err := m.Device(int(os.Getenv("RINGO_RANK")[0] - '0'))
	if err != nil {
		return nil, nil, err
	}
	c, err := ringo.OpenEnv(context.Background(), ringo.Config{Device: d})
	return c, d, err
}
