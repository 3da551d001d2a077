package programs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/kernels"
)

// A servant is a rank that does as it is told, a line at a time, and says what came of it, as the programs in C do:
//
//	do OP        "in" as soon as it waits in the operation, then "done RESULT"
//	on           an operation that waits for it goes on
//	watch        "fell RESULT" as soon as its communicator has failed
//	end HOW      Close or Abort, and "ended RESULT"
//	close        "closed RESULT", and of a process "gone RESULT", the last word
type servant struct {
	store
	c   *ringo.Comm
	say func(format string, args ...any)

	on    chan struct{} // the test has said so
	graph *gpu.Graph
	stop  chan struct{}  // closed at the end
	tasks sync.WaitGroup // that the rank has begun
	after []func() error // what gives things back, last first
}

func newServant(c *ringo.Comm, d *gpu.Device, say func(string, ...any)) *servant {
	r := &servant{store: store{d: d}, c: c, say: say, on: make(chan struct{}, 1), stop: make(chan struct{})}
	r.after = append(r.after, r.free)
	return r
}

// emulated are the GPUs. Kernels may wait for a rank that is stopped, on a machine that is busy.
var emulated = cudaemu.Config{Devices: ranks, Stall: 5 * time.Minute}

// asServant is the Config of a servant.
func asServant(gpus bool) ringo.Config {
	cfg := ringo.Config{Timeout: 2 * patience, JoinTimeout: patience}
	if gpus {
		cfg.MaxBlocks = 2 // queues that an emulated kernel soon fills
	}
	return cfg
}

// serve has this process be a servant until it is told to close: its rank, whether it has a GPU, and where ranks
// meet. It reports whether the process goes on.
func serve(seat []string, commands *bufio.Scanner, say func(string, ...any)) bool {
	rank, err := strconv.Atoi(seat[0])
	id, bad := bootstrap.ParseID(seat[2])
	cfg := asServant(seat[1] == "true")
	cfg.ID, cfg.Rank, cfg.Size = &id, rank, ranks
	var m *gpu.Machine
	if err = errors.Join(err, bad); err == nil && seat[1] == "true" {
		if m, err = emulate(emulated); err == nil {
			cfg.Device, err = m.Device(rank)
		}
	}
	var c *ringo.Comm
	if err == nil {
		c, err = ringo.Open(context.Background(), cfg)
	}
	say("open %s", result(err))
	if err != nil {
		return false
	}
	r := newServant(c, cfg.Device, say)
	for commands.Scan() {
		switch command := commands.Text(); command {
		case "end return":
			return false
		case "end exit":
			os.Exit(0)
		default:
			if r.obey(command) {
				continue
			}
			if m != nil { // which waits for the GPUs of other processes
				err = m.Close()
			}
			say("gone %s", result(err))
			return true
		}
	}
	return false
}

// obey carries out a command, and reports whether more may follow.
func (r *servant) obey(command string) bool {
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
func (r *servant) close() error {
	err := r.c.Close()
	close(r.stop)
	r.tasks.Wait()
	for _, f := range slices.Backward(r.after) {
		err = errors.Join(err, f())
	}
	return err
}

// waitsIn are the functions on the stack of a rank that waits in a method which all ranks call.
var waitsIn = map[string]string{"Split": "life.(*Life).Meet(", "Shrink": ").Regroup(", "Register": "life.(*Life).Meet("}

// tellIn says when the rank waits in an operation: the stack of one of its goroutines has the function.
func (r *servant) tellIn(op string, over <-chan struct{}) {
	functions := []string{"ringo.(*Comm).Do(", "ringo.(*Comm).Synchronize("}
	if f := waitsIn[op]; f != "" {
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
func (r *servant) watch() {
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
func (r *servant) do(op string) error {
	switch op {
	case "all to all":
		return r.call(&Step{Do: Call, Kind: call.AlltoAll, Type: kernels.Int32, Count: 1}, 12)
	case "AllReduce 8 B", "first connection":
		return r.call(allReduce(8))
	case "AllReduce 1 MiB":
		return r.call(allReduce(1 << 20))
	case "Recv", "Send": // so much fits into no queue
		size, sender := 64<<20, 0
		if r.d != nil {
			size = 16 << 20
		}
		if op == "Recv" {
			sender = 1
		}
		return r.call(&Step{Do: Message, Type: kernels.Uint8, Count: size, Sender: sender, Recver: 1 - sender}, size)
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
	case "Register":
		x, err := r.alloc(make([]byte, 1<<20))
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

// allReduce is one of so many bytes, in place.
func allReduce(n int) (*Step, int) {
	return &Step{Do: Call, Kind: call.AllReduce, Type: kernels.Int32, Count: n / 4}, n
}

// An errOf is no error: the new communicator has so many ranks.
type errOf int

func (n errOf) Error() string { return fmt.Sprintf("goes on with %d ranks", int(n)) }

// capture captures an all-reduce behind a function, and carries it out.
func (r *servant) capture(before func()) error {
	s, err := r.d.NewStream()
	if err != nil {
		return err
	}
	r.after = append(r.after, func() error { return r.d.DestroyStream(s) })
	calls, err := r.calls(allReduce(1 << 20))
	if err != nil {
		return err
	}
	calls[0].Stream = s
	if r.graph, err = r.d.Capture(s, func() error {
		before()
		return r.c.Do(calls[0])
	}); err != nil {
		return err
	}
	r.after = append(r.after, r.graph.Close)
	return errors.Join(r.graph.Launch(s), r.c.Synchronize(s))
}

// call carries out this rank's part of a step on n bytes of new memory.
func (r *servant) call(s *Step, n int) error {
	calls, err := r.calls(s, n)
	for _, c := range calls {
		err = errors.Join(err, r.c.Do(c))
	}
	if err != nil || len(calls) == 0 {
		return err
	}
	return r.sync(r.c)
}

func (r *servant) calls(s *Step, n int) ([]*ringo.Call, error) {
	x, err := r.alloc(make([]byte, n))
	if err != nil {
		return nil, err
	}
	m := member{c: r.c}
	m.memory[0] = x
	return s.calls(m, nil)
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
