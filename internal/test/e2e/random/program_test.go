//go:build unix

package random

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
)

// A program is what all members do: steps, of which each follows from the seed, its number and the members that are left, so that
// members that go on after an end do the same.
type program struct {
	seed      uint64
	transport string
	members   int // at first
	steps     int
	end       end // of one member, if any
}

// An end is how a member ends, and when.
type end struct {
	how    string // "" for none
	member int
	step   int
	after  time.Duration // within the step; 0 before it
}

// The ends of members. Those of processes alone come last.
var ends = []string{"", "", "Close", "Abort", "Abort and go on", "late", "exit", "kill"}

func programOf(seed uint64, processes bool) program {
	dice := rand.New(rand.NewPCG(seed, 0))
	p := program{
		seed: seed, transport: []string{"inproc", "shm", "socket", "auto"}[dice.IntN(4)],
		members: 2 + dice.IntN(3), steps: 2 + dice.IntN(8),
	}
	of := ends
	if !processes {
		of = ends[:len(ends)-2]
	} else if p.transport == "inproc" {
		p.transport = "shm"
	}
	p.end = end{how: of[dice.IntN(len(of))], member: dice.IntN(p.members), step: dice.IntN(p.steps)}
	if d := dice.IntN(3000); p.end.how != "Close" && p.end.how != "late" && d > 1000 {
		p.end.after = time.Duration(d) * time.Microsecond
	}
	return p
}

func (p program) String() string {
	s := fmt.Sprintf("seed %d: %d members, %d steps over %s", p.seed, p.members, p.steps, p.transport)
	if p.end.how != "" {
		s += fmt.Sprintf("; member %d ends in step %d by %s after %v", p.end.member, p.end.step, p.end.how, p.end.after)
	}
	return s
}

const (
	timeout     = 20 * time.Second // of an operation
	joinTimeout = 8 * time.Second
	lateness    = 300 * time.Millisecond // of a member that is late
)

func (p program) config() ringo.Config {
	return ringo.Config{Transport: p.transport, Timeout: timeout, JoinTimeout: joinTimeout}
}

// A member is a rank of a program, with a number that it keeps.
type member struct {
	program
	number int32
	step   int32 // the next one
	ended  bool  // has had its end, and goes on
	c      *ringo.Comm
	who    []int32                                                   // the members of c, by rank
	spawn  func(id bootstrap.ID, rank, size int, number, step int32) // starts a member that comes in
	ends   func(how string)                                          // of the member's process
}

// errGone says that this member has ended as the program wants it.
var errGone = errors.New("gone")

// run carries out the program. An error is a fault of the library.
func (m *member) run() error {
	defer func() { m.c.Close() }()
	if err := m.meet(); err != nil { // a member that came in does so while others may end
		if err = m.goOn(err); err != nil {
			return err
		}
	}
	for m.step < int32(m.steps) {
		at := m.step
		err := m.work()
		if m.step = at + 1; errors.Is(err, errGone) {
			return nil
		}
		if err == nil {
			continue
		}
		if err = m.goOn(err); err != nil {
			return fmt.Errorf("member %d, step %d: %w", m.number, at, err)
		}
	}
	return nil
}

// goOn goes on with those that are left, if the failure may be.
func (m *member) goOn(err error) error {
	for err != nil {
		if bad := m.judge(err); bad != nil {
			return bad
		}
		next, lost := m.c.Shrink(context.Background())
		if lost != nil {
			return fmt.Errorf("Shrink: %w, after %w", lost, err)
		}
		m.take(next)
		err = m.meet()
	}
	return nil
}

// judge says what is wrong with a failure.
func (m *member) judge(err error) error {
	var wrong wrongData
	var e *ringo.Error
	known := slices.ContainsFunc([]error{ringo.ErrPeer, ringo.ErrLeft, ringo.ErrAborted, ringo.ErrTimeout}, func(k error) bool { return errors.Is(err, k) })
	switch {
	case errors.As(err, &wrong):
		return err
	case m.end.how == "":
		return fmt.Errorf("without an end: %w", err)
	case !errors.As(err, &e):
		return fmt.Errorf("not an *Error: %w", err)
	case !known:
		return fmt.Errorf("not of a peer's end: %w", err)
	case errors.Is(err, ringo.ErrTimeout) && m.end.how != "late":
		return fmt.Errorf("the end was not noticed: %w", err)
	}
	return nil
}

func (m *member) take(next *ringo.Comm) {
	_ = m.c.Close()
	m.c, m.who = next, nil
}

// meet has all members of a new communicator know each other, and the newest step.
func (m *member) meet() error {
	who, newest := make([]int32, m.c.Size()), []int32{m.step}
	if err := ringo.AllGather(m.c, who, []int32{m.number}); err != nil {
		return err
	}
	m.who = who
	err := ringo.AllReduce(m.c, newest, ringo.Max)
	m.step = newest[0]
	return err
}

// work is a step.
func (m *member) work() error {
	if e := m.end; e.how != "" && !m.ended && int(m.number) == e.member && int(m.step) == e.step {
		m.ended = true
		if e.after == 0 {
			if err := m.finish(e.how); err != nil {
				return err
			}
		} else {
			over := make(chan error, 1)
			go func() {
				time.Sleep(e.after)
				over <- m.finish(e.how)
			}()
			err := m.act()
			if ended := <-over; errors.Is(ended, errGone) {
				return ended
			}
			return err
		}
	}
	return m.act()
}

// finish is the member's end.
func (m *member) finish(how string) error {
	switch how {
	case "Close":
		if err := m.c.Close(); err != nil {
			return err
		}
		return errGone
	case "Abort":
		m.c.Abort(errors.New("by the program"))
		return errGone
	case "Abort and go on":
		m.c.Abort(errors.New("by the program"))
	case "late":
		time.Sleep(lateness)
	default:
		m.ends(how)
	}
	return nil
}

// act carries out a step.
func (m *member) act() error {
	dice := rand.New(rand.NewPCG(m.seed, uint64(1+m.step)))
	kind := dice.IntN(12)
	switch {
	case kind == 0:
		return m.split(dice)
	case kind == 1 && m.c.Size() < 5:
		return m.grow()
	case kind == 2:
		next, err := m.c.Shrink(context.Background())
		if err != nil {
			return err
		}
		m.take(next)
		return m.meet()
	case kind < 6:
		return m.messages(dice)
	case kind < 8:
		return m.started(dice)
	}
	return m.collective(m.c, m.who, dice)
}

// split has parts of the members do a collective.
func (m *member) split(dice *rand.Rand) error {
	colors := make([]int, len(m.who))
	for r := range colors {
		colors[r] = dice.IntN(3) - 1 + 1*dice.IntN(2) // -1 is NoColor
		colors[r] = max(colors[r], ringo.NoColor)
	}
	mine := colors[m.c.Rank()]
	part, err := m.c.Split(context.Background(), mine, 0)
	if err != nil || part == nil {
		return err
	}
	var who []int32
	for r, color := range colors {
		if color == mine {
			who = append(who, m.who[r])
		}
	}
	err = m.collective(part, who, dice)
	if cerr := part.Close(); err == nil {
		err = cerr
	}
	var wrong wrongData
	if err == nil || errors.As(err, &wrong) {
		return err
	}
	if m.end.how == "late" && errors.Is(err, ringo.ErrTimeout) { // which is the part's alone
		m.c.Abort(err)
	}
	for began := time.Now(); m.c.Failure() == nil && time.Since(began) < timeout; { // who has ended was of the whole too
		time.Sleep(time.Millisecond)
	}
	if m.c.Failure() == nil && m.end.how != "Close" {
		return fmt.Errorf("the part has failed, the whole is well: %w", err)
	}
	return err
}

// grow takes in a new member.
func (m *member) grow() error {
	var id *bootstrap.ID
	size := m.c.Size() + 1
	if m.c.Rank() == 0 {
		at, err := ringo.NewID("127.0.0.1:0")
		if err != nil {
			return err
		}
		id = &at
		m.spawn(at, size-1, size, slices.Max(m.who)+1, m.step+1)
	}
	next, err := m.c.Grow(context.Background(), id, size)
	if err != nil && id != nil {
		bootstrap.Stop(*id) // nobody meets the new one
	}
	if err == nil {
		m.take(next)
		m.step++ // as the new one has it
		err = m.meet()
		m.step--
	}
	return err
}

// do carries out a call, with a deadline if somebody is late.
func (m *member) do(c *ringo.Comm, call *ringo.Call) error {
	if m.end.how != "late" {
		return c.Do(call)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lateness/3)
	defer cancel()
	return c.DoContext(ctx, call)
}

func exit(code int, why ...any) {
	fmt.Println(why...)
	os.Exit(code)
}
