package programs

import (
	"cmp"
	"context"
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
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/mem"
)

// waits bounds each wait of a survivor: longer than a program may take, so that a wait which only a time-out ends is a
// hang.
const waits = 5 * time.Minute

var errReason = errors.New("as the program has it")

// forPart begins the reason of a rank that aborts because a part of the communicator has failed: that rank is not to
// blame.
const forPart = "a part has failed: "

// A survivor is a rank of a program with Kills. It goes on with all that are left until they have done all steps.
type survivor struct {
	store
	p      *Program
	number int            // for ever; from p.Ranks on of those that come in
	meets  []bootstrap.ID // where the first ones meet, and where each of the others comes in
	say    func(format string, args ...any)

	c      *ringo.Comm
	who    []int32 // the numbers of c's ranks
	next   int     // the next step, which after a failure all agree on
	gone   bool    // its own Leave has been carried out, or has begun to
	report report
}

// A report is the end of a survivor.
type report struct {
	calls int
	took  time.Duration // of the longest recovery
	who   string        // the numbers of the last communicator's ranks
	left  bool          // as the program has it
	lost  error         // it could not come in
}

// A wrong result is never excused.
type wrong string

func (w wrong) Error() string { return string(w) }

// live carries out all steps, from those on that follow the Grow which takes this rank in as the last of size. Its
// error is one that no end of another rank excuses.
func (s *survivor) live(size int) (err error) {
	defer func() { err = errors.Join(err, s.free()) }()
	if err = s.open(size); s.c == nil {
		return err
	}
	for {
		over := false
		if err == nil {
			over, err = s.work()
		}
		if over {
			return errors.Join(err, s.c.Close())
		}
		if err != nil {
			if err = s.recover(err); err != nil {
				return fmt.Errorf("step %d: %w", s.next-1, err)
			}
		}
	}
}

func (s *survivor) open(size int) (err error) {
	transport, tcp := strings.CutSuffix(s.p.Transport, "+tcp")
	cfg := ringo.Config{Transport: transport, SlotBytes: s.p.Slot, Timeout: waits, JoinTimeout: waits,
		Log: slog.New(slog.DiscardHandler), ID: &s.meets[0], Rank: s.number, Size: size, Device: s.d}
	if tcp {
		cfg.SocketNetwork = "tcp"
	}
	if s.p.Slot > 0 {
		cfg.Slots = 4
	}
	late := s.number - s.p.Ranks
	if late >= 0 {
		cfg.ID, cfg.Rank, s.next = &s.meets[1+late], size-1, s.p.growths()[late]+1
	}
	if s.c, err = ringo.Open(context.Background(), cfg); err != nil {
		s.c = nil
		if late >= 0 && s.p.leaves() && strings.Contains(err.Error(), "join: ") {
			s.report.lost, err = err, nil // one that was there has left before all had met
		}
		return err
	}
	if late >= 0 {
		return s.gather()
	}
	for r := range size {
		s.who = append(s.who, int32(r))
	}
	return nil
}

// gather has all ranks of a new communicator know each other, and the newest step.
func (s *survivor) gather() error {
	s.who = nil
	who, newest := make([]int32, s.c.Size()), []int32{int32(s.next)}
	if err := ringo.AllGather(s.c, who, []int32{int32(s.number)}); err != nil {
		return err
	}
	s.who = who
	err := ringo.AllReduce(s.c, newest, ringo.Max)
	s.next = int(newest[0])
	return err
}

// work is a step. After the last one all ranks meet.
func (s *survivor) work() (over bool, err error) {
	if l := s.p.leaveOf(s.number); l >= 0 && s.next >= l && !s.gone {
		s.gone = true
		if over, err = s.leave(&s.p.Steps[l]); over || err != nil {
			return over, err
		}
	}
	if s.next < len(s.p.Steps) {
		s.next++
		return false, s.step(s.next-1, &s.p.Steps[s.next-1])
	}
	if s.gone && s.p.Steps[s.p.leaveOf(s.number)].After > 0 {
		select {} // its end comes
	}
	if err := errors.Join(ringo.Barrier(s.c), s.sync(s.c)); err != nil {
		return false, err
	}
	for n := range s.p.Ranks {
		if stays := !slices.Contains(s.p.leavers(), n); stays != slices.Contains(s.who, int32(n)) {
			return true, wrong(fmt.Sprintf("%v go on, of whom %v have left", s.who, s.p.leavers()))
		}
	}
	s.report.who = fmt.Sprint(s.who)
	return true, s.c.Err()
}

// leave ends as the program has it.
func (s *survivor) leave(l *Step) (over bool, err error) {
	switch {
	case l.How == "deadline":
		return false, s.deadline()
	case l.How == "Abort":
		s.c.Abort(errReason)
	case l.After > 0:
		time.AfterFunc(time.Duration(l.After)*time.Microsecond, func() { s.die(l.How) })
		return false, nil
	case l.How != "Close":
		s.die(l.How)
	}
	s.report.left = true
	return true, nil
}

// die ends the process.
func (s *survivor) die(how string) {
	s.say("left")
	if how == "kill" {
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		select {}
	}
	os.Exit(0)
}

// deadline makes a call that nobody answers.
func (s *survivor) deadline() error {
	for { // a busy machine may come to it when the deadline has passed: then nothing is done
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		err := s.c.DoContext(ctx, ringo.RecvOf(make([]int64, 3), (s.c.Rank()+1)%s.c.Size()))
		cancel()
		switch {
		case err == nil:
			return wrong("a message that nobody sends comes")
		case errors.Is(err, ringo.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded):
			return err
		}
	}
}

// excuses reports whether the end of a rank of those may cause this error in others. Only the ranks that leave are to
// blame.
func (s *survivor) excuses(err error, who []int32) bool {
	var e *ringo.Error
	if _, bad := errors.AsType[wrong](err); bad || !errors.As(err, &e) {
		return false
	}
	if s.p.has("deadline") && (errors.Is(err, ringo.ErrTimeout) || errors.Is(err, ringo.ErrMismatch)) {
		return true
	}
	if errors.Is(err, ringo.ErrTimeout) || !errors.Is(err, ringo.ErrPeer) && !errors.Is(err, ringo.ErrLeft) {
		return false
	}
	text := err.Error()
	if s.p.has("deadline") || len(who) == 0 || strings.Contains(text, forPart) ||
		strings.Contains(text, "Shrink was called") { // by one that could not grow
		return s.p.leaves()
	}
	return !slices.ContainsFunc(e.Culprits, func(r int) bool { return !slices.Contains(s.p.leavers(), int(who[r])) })
}

// recover goes on with all that are left.
func (s *survivor) recover(err error) error {
	began := time.Now()
	for err != nil {
		if !s.excuses(err, s.who) {
			return errors.Join(err, s.c.Close())
		}
		next, lost := s.c.Shrink(context.Background())
		if lost = errors.Join(lost, s.c.Close()); lost != nil {
			return fmt.Errorf("shrink after %w: %w", err, lost)
		}
		s.c = next
		err = s.gather()
	}
	s.report.took = max(s.report.took, time.Since(began))
	if s.report.took > tier.Soon(3*tier.Patience) && !s.p.stops() {
		return wrong(fmt.Sprint("to recover has taken ", s.report.took))
	}
	return nil
}

func (s *survivor) step(i int, of *Step) error {
	switch of.Do {
	case Leave:
		return nil
	case Stop:
		if of.Rank == s.number {
			s.say("stop %d", of.After)
		}
		return nil
	case Parts:
		return s.parts(i, of)
	case Shrink:
		n := s.c.Size()
		err := ringo.Barrier(s.c) // so that no rank shrinks before all have come
		if err != nil || s.p.leavesBefore(i) {
			return err
		}
		next, err := s.c.Shrink(context.Background())
		if err == nil && next.Size() != n {
			err = errors.Join(wrong(fmt.Sprintf("of %d ranks %d go on", n, next.Size())), next.Close())
		}
		return s.take(next, err)
	case Grow:
		var id *bootstrap.ID
		late := slices.Index(s.p.growths(), i)
		if s.c.Rank() == 0 {
			id = &s.meets[1+late]
			s.say("grow %d %d", s.p.Ranks+late, s.c.Size()+1)
		}
		return s.take(s.c.Grow(context.Background(), id, s.c.Size()+1))
	}
	return s.try(s.c, of, i)
}

// take goes on with a new communicator, as soon as all ranks have it.
func (s *survivor) take(next *ringo.Comm, err error) error {
	if err == nil {
		err = s.c.Close()
		s.c = next
	}
	if err == nil {
		err = s.gather()
	}
	return err
}

// parts has parts of the ranks carry out a call.
func (s *survivor) parts(i int, of *Step) error {
	color := s.c.Rank() % of.Count
	part, err := s.c.Split(context.Background(), color, 0)
	if err != nil {
		return err
	}
	bad := s.try(part, &of.Calls[0], i)
	var who []int32
	for r, number := range s.who {
		if r%of.Count == color {
			who = append(who, number)
		}
	}
	if bad != nil && s.excuses(bad, who) {
		if s.p.onlyDie() {
			for s.c.Failure() == nil { // the process was of s.c too
				time.Sleep(time.Millisecond)
			}
		} else if s.c.Err() == nil {
			// Else others that need this rank go on. This rank then shrinks at once, for ranks do not wait long for a
			// rank that has called Abort.
			s.c.Abort(errors.New(forPart + bad.Error()))
		}
		return errors.Join(s.c.Failure(), part.Close())
	}
	return errors.Join(bad, part.Close())
}

// try carries out calls on memory of their own, and compares that with the model's.
func (s *survivor) try(c *ringo.Comm, of *Step, salt int) error {
	of = of.among(c.Size())
	p := &Program{Seed: s.p.Seed<<8 + uint64(salt), Ranks: c.Size(), Bytes: s.p.Bytes, Kills: true}
	model := newModel(p)
	if err := model.step(of); err != nil {
		return wrong(err.Error())
	}
	s.report.calls += model.calls
	m, host := member{c: c}, [Buffers][]byte{}
	var calls []*ringo.Call
	for _, k := range of.each() {
		for _, b := range []int{k.In, k.Out} {
			if host[b] != nil {
				continue
			}
			var err error
			host[b] = contents(p, 0, c.Rank(), b)
			if m.memory[b], err = s.alloc(host[b]); err != nil {
				return err
			}
		}
		list, err := k.calls(m, func(in extent) (mem.Region, error) {
			return s.alloc(pattern(p, c.Rank(), k.Type)[(k.Fill+in.at)*k.Type.Size():][:in.n*k.Type.Size()])
		})
		if err != nil {
			return err
		}
		calls = append(calls, list...)
	}
	if err := errors.Join(s.carry(c, of, calls, salt), s.sync(c)); err != nil {
		return err
	}
	for b, got := range host {
		if got == nil {
			continue
		}
		if s.d != nil {
			if err := s.d.Read(got, m.memory[b]); err != nil {
				return err
			}
		}
		if at := model.at(0, c.Rank(), b).differs(got); at >= 0 {
			return wrong(fmt.Sprintf("rank %d of %d, %v: buffer %d differs at byte %d: want x", c.Rank(), c.Size(), of, b, at))
		}
	}
	return nil
}

// carry carries calls out: messages in groups that each rank cuts as it likes.
func (s *survivor) carry(c *ringo.Comm, of *Step, calls []*ringo.Call, salt int) error {
	if of.Do == Group && of.By == "" {
		return s.messages(c, calls, rand.New(rand.NewPCG(s.p.Seed, uint64(salt*100+s.number))))
	}
	var pending []*ringo.Pending
	for range max(1, of.Times) {
		for _, one := range calls {
			var err error
			switch of.By {
			case "start":
				pending = append(pending, c.Start(one))
			case "context":
				ctx, cancel := context.WithTimeout(context.Background(), waits)
				err = c.DoContext(ctx, one)
				cancel()
			default:
				err = c.Do(one)
			}
			if err != nil {
				return err
			}
		}
	}
	var all []error
	for _, x := range pending {
		all = append(all, x.Wait())
	}
	return errors.Join(all...)
}

// messages carries messages out in groups, each in a random order that keeps that of each pair of ranks.
func (s *survivor) messages(c *ringo.Comm, calls []*ringo.Call, dice *rand.Rand) error {
	for len(calls) > 0 {
		n := 1 + dice.IntN(min(5, len(calls)))
		for n < len(calls) && calls[n-1].Kind == call.Send && calls[n-1].Peer == c.Rank() {
			n++ // to itself: with its receipt
		}
		places := dice.Perm(2 * c.Size())
		slices.SortStableFunc(calls[:n], func(a, b *ringo.Call) int {
			return cmp.Compare(places[2*a.Peer+int(a.Kind)%2], places[2*b.Peer+int(b.Kind)%2])
		})
		var g ringo.Group
		for _, one := range calls[:n] {
			g.Add(c, one)
		}
		if err := g.Run(); err != nil {
			return err
		}
		calls = calls[n:]
	}
	return nil
}
