package random

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/mem"
)

// waits bounds each wait of a rank: longer than a program may take, so that a wait which only a time-out ends is a
// hang.
const waits = 3 * time.Minute

var errReason = errors.New("as the program has it")

// A rank is one of a program.
type rank struct {
	p    *program
	me   int // for ever
	c    *ringo.Comm
	d    *gpu.Device   // nil on host memory
	grow *bootstrap.ID // where one more comes in
	used []ringo.Region
}

// config is a rank's Config, without the place where ranks meet.
func (p *program) config() ringo.Config {
	transport, tcp := strings.CutSuffix(p.transport, " tcp")
	cfg := ringo.Config{Transport: transport, SlotBytes: p.slotBytes, Timeout: waits, JoinTimeout: waits,
		Log: slog.New(slog.DiscardHandler)}
	if tcp {
		cfg.SocketNetwork = "tcp"
	}
	if p.slotBytes > 0 {
		cfg.Slots = 4
	}
	return cfg
}

// run does the steps from one on. Its error is one that the program's end does not excuse.
func (r *rank) run(from int) (err error) {
	defer func() {
		for _, x := range r.used {
			err = errors.Join(err, r.d.Free(x))
		}
	}()
	for i := from; i < len(r.p.steps); i++ {
		if r.ends(i) {
			return r.end()
		}
		if err := r.step(i, &r.p.steps[i]); err != nil {
			if !r.p.excuses(err) {
				return fmt.Errorf("step %d: %w", i, errors.Join(err, r.c.Close()))
			}
			return r.recover()
		}
	}
	switch {
	case r.ends(len(r.p.steps)):
		return r.end()
	case r.p.harmless():
		return errors.Join(r.c.Err(), r.c.Close())
	}
	// A rank that has done its steps waits for the end, to take part if others shrink.
	if err = errors.Join(ringo.Barrier(r.c), r.sync(r.c)); err == nil {
		err = wrong("a barrier ends without a rank that has ended")
	}
	if !r.p.excuses(err) {
		return errors.Join(err, r.c.Close())
	}
	return r.recover()
}

func (r *rank) ends(i int) bool { return r.p.end != "" && r.me == r.p.ender && r.p.at == i }

// end ends as the program has it.
func (r *rank) end() error {
	switch r.p.end {
	case "Abort":
		r.c.Abort(errReason)
	case "exit":
		fmt.Println("well")
		os.Exit(0)
	case "return":
		fmt.Println("well")
		return nil
	case "kill":
		fmt.Println("well")
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		select {}
	case "deadline":
		var err error
		for begun := false; !begun; { // a busy machine may come to it when the deadline has passed: then nothing is done
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			err = r.c.DoContext(ctx, ringo.RecvOf(make([]int64, 3), (r.c.Rank()+1)%r.c.Size()))
			cancel()
			begun = errors.Is(err, ringo.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded)
		}
		if err == nil || !r.p.excuses(err) {
			return fmt.Errorf("a deadline gives %w", errors.Join(err, r.c.Close()))
		}
		return r.recover()
	}
	return r.c.Close()
}

// A wrong result is never excused.
type wrong string

func (w wrong) Error() string { return string(w) }

// excuses reports whether the end of a rank may cause this error in others.
func (p *program) excuses(err error) bool {
	if _, bad := errors.AsType[wrong](err); bad || p.harmless() {
		return false
	}
	var e *ringo.Error
	if p.end == "deadline" && (errors.Is(err, ringo.ErrTimeout) || errors.Is(err, ringo.ErrMismatch)) {
		return errors.As(err, &e)
	}
	return errors.As(err, &e) && (errors.Is(err, ringo.ErrPeer) || errors.Is(err, ringo.ErrLeft)) &&
		!errors.Is(err, ringo.ErrTimeout)
}

// recover goes on with all that are left.
func (r *rank) recover() error {
	why := r.c.Err()
	next, err := r.c.Shrink(context.Background())
	err = errors.Join(err, r.c.Close())
	if err != nil {
		return fmt.Errorf("shrink after %v: %w", why, err)
	}
	r.c = next
	want := r.p.survivors()
	got := make([]int32, r.c.Size())
	err = ringo.AllGather(r.c, got, []int32{int32(r.me)})
	if err == nil && !slices.Equal(got, want) {
		err = wrong(fmt.Sprintf("%v go on, not %v, after %v", got, want, why))
	}
	if err == nil {
		err = r.collective(r.c, &step{kind: ringo.KindAllReduce, count: 1000, times: 1}, 99)
	}
	return errors.Join(err, r.c.Close())
}

func (r *rank) step(i int, s *step) error {
	switch s.do {
	case letters:
		return r.letters(i, s)
	case split:
		part, err := r.c.Split(context.Background(), r.me%s.parts, 0)
		if err != nil {
			return err
		}
		bad := r.collective(part, s, i)
		err = errors.Join(bad, part.Close())
		if bad != nil && r.c.Err() == nil && r.p.excuses(bad) {
			// else others that need this rank go on; this rank then shrinks at once, for ranks do not wait long for a
			// rank that has called Abort
			r.c.Abort(bad)
		}
		return err
	case shrink:
		n := r.c.Size()
		err := ringo.Barrier(r.c) // so that no rank shrinks before all have come
		if r.p.end != "" && r.p.at <= i {
			return err
		}
		next, err := r.c.Shrink(context.Background())
		if err == nil && next.Size() != n {
			err = errors.Join(wrong(fmt.Sprintf("of %d ranks %d go on", n, next.Size())), next.Close())
		}
		return r.take(next, err)
	case grow:
		var id *bootstrap.ID
		if r.c.Rank() == 0 {
			id = r.grow
		}
		next, err := r.c.Grow(context.Background(), id, r.p.ranks+1)
		return r.take(next, err)
	}
	return r.collective(r.c, s, i)
}

// take goes on with a new communicator, as soon as all ranks have it.
func (r *rank) take(next *ringo.Comm, err error) error {
	if err == nil {
		err = r.c.Close()
		r.c = next
	}
	if err == nil {
		err = ringo.Barrier(r.c)
	}
	return err
}

// memory is a buffer that holds bytes.
func (r *rank) memory(b []byte) (ringo.Region, error) {
	if r.d == nil || len(b) == 0 {
		return mem.Host(b), nil
	}
	x, err := r.d.AllocMapped(len(b))
	if err != nil {
		return x, err
	}
	r.used = append(r.used, x)
	return x, r.d.Write(x, b)
}

// bytes are a buffer's, when what was queued is done.
func (r *rank) bytes(x ringo.Region, host []byte) ([]byte, error) {
	if r.d == nil || len(host) == 0 {
		return host, nil
	}
	return host, r.d.Read(host, x)
}

// letters sends and receives a list of messages in groups.
func (r *rank) letters(i int, s *step) error {
	dice := rand.New(rand.NewPCG(r.p.seed, uint64(i*100+r.me)))
	boxes, hosts := map[int]ringo.Region{}, map[int][]byte{}
	var mine []*ringo.Call
	at := r.c.Rank()
	for k, l := range s.letters {
		if l.from == at {
			x, err := r.memory(content(i, k, l.bytes))
			if err != nil {
				return err
			}
			mine = append(mine, &ringo.Call{Kind: ringo.KindSend, In: x, Count: l.bytes, Type: ringo.Uint8, Peer: l.to})
		}
		if l.to == at {
			hosts[k] = make([]byte, l.bytes)
			x, err := r.memory(hosts[k])
			if err != nil {
				return err
			}
			boxes[k] = x
			mine = append(mine, &ringo.Call{Kind: ringo.KindRecv, Out: x, Count: l.bytes, Type: ringo.Uint8, Peer: l.from})
		}
		if dice.IntN(3) > 0 && k < len(s.letters)-1 {
			continue
		}
		if err := r.group(mine, dice); err != nil {
			return err
		}
		mine = mine[:0]
	}
	if err := r.sync(r.c); err != nil {
		return err
	}
	for k, x := range boxes {
		got, err := r.bytes(x, hosts[k])
		if err != nil {
			return err
		}
		if string(got) != string(content(i, k, s.letters[k].bytes)) {
			return wrong(fmt.Sprintf("letter %d of %d is wrong", k, len(s.letters)))
		}
	}
	return nil
}

// group carries calls out in a random order that keeps that of each pair of ranks.
func (r *rank) group(calls []*ringo.Call, dice *rand.Rand) error {
	places := dice.Perm(2 * r.c.Size())
	slices.SortStableFunc(calls, func(a, b *ringo.Call) int {
		return cmp.Compare(places[2*a.Peer+int(a.Kind)%2], places[2*b.Peer+int(b.Kind)%2])
	})
	var g ringo.Group
	for _, c := range calls {
		g.Add(r.c, c)
	}
	return g.Run()
}

func content(i, k, bytes int) []byte {
	x := make([]byte, bytes)
	for j := range x {
		x[j] = byte(i*57 + k*31 + j + j>>8)
	}
	return x
}

// sync waits for the GPU.
func (r *rank) sync(c *ringo.Comm) error {
	if r.d == nil {
		return nil
	}
	return c.Synchronize(0)
}

// collective carries out one or several collectives, and looks at every element.
func (r *rank) collective(c *ringo.Comm, s *step, salt int) error {
	var calls []*ringo.Call
	var hosts [][]byte
	for k := range s.times {
		call := &ringo.Call{Kind: s.kind, Count: s.count, Type: ringo.Int32, Op: ringo.Sum, Root: s.root}
		if s.kind == ringo.KindBarrier {
			call = ringo.BarrierOf()
		}
		in, out := call.Shape(c.Rank(), c.Size())
		give, take := make([]byte, 4*in), make([]byte, 4*out)
		for j := range in {
			binary.NativeEndian.PutUint32(give[4*j:], value(salt, k, c.Rank(), j))
		}
		var err, bad error
		if s.kind != ringo.KindBarrier {
			call.In, err = r.memory(give)
			call.Out, bad = r.memory(take)
		}
		if err := errors.Join(err, bad); err != nil {
			return err
		}
		if r.d != nil && s.kind != ringo.KindBarrier && in == 0 { // not a mixture
			call.In = call.Out.Slice(0, 0)
		}
		if r.d != nil && s.kind != ringo.KindBarrier && out == 0 {
			call.Out = call.In.Slice(0, 0)
		}
		calls, hosts = append(calls, call), append(hosts, take)
	}
	if err := r.carry(c, s, calls); err != nil {
		return err
	}
	for k, call := range calls {
		got, err := r.bytes(call.Out, hosts[k])
		if err != nil {
			return err
		}
		for j := range len(got) / 4 {
			if x, want := binary.NativeEndian.Uint32(got[4*j:]), result(c, s, salt, k, j); x != want {
				return wrong(fmt.Sprintf("element %d of %v is %d, not %d", j, call, x, want))
			}
		}
	}
	return nil
}

// carry carries calls out.
func (r *rank) carry(c *ringo.Comm, s *step, calls []*ringo.Call) error {
	var pending []*ringo.Pending
	for _, call := range calls {
		switch s.do {
		case started:
			pending = append(pending, c.Start(call))
		case bounded:
			ctx, cancel := context.WithTimeout(context.Background(), waits)
			err := c.DoContext(ctx, call)
			cancel()
			if err != nil {
				return err
			}
		default:
			if err := c.Do(call); err != nil {
				return err
			}
		}
	}
	var all []error
	for _, x := range pending {
		all = append(all, x.Wait())
	}
	return errors.Join(append(all, r.sync(c))...)
}

// value is what a rank contributes to an element.
func value(salt, k, rank, j int) uint32 { return uint32(salt*1_000_003 + k*70_001 + rank*7919 + j*31) }

// result is what an element of a rank is to be.
func result(c *ringo.Comm, s *step, salt, k, j int) (x uint32) {
	at := c.Rank() * s.count
	switch s.kind {
	case ringo.KindReduceScatter, ringo.KindAllReduce, ringo.KindReduce:
		if s.kind != ringo.KindReduceScatter {
			at = 0
		}
		for r := range c.Size() {
			x += value(salt, k, r, at+j)
		}
		return x
	case ringo.KindBroadcast:
		return value(salt, k, s.root, j)
	case ringo.KindScatter:
		return value(salt, k, s.root, at+j)
	case ringo.KindAlltoAll:
		return value(salt, k, j/s.count, at+j%s.count)
	}
	return value(salt, k, j/s.count, j%s.count)
}
