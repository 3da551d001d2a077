package fifo

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// A workPair is a Work with goroutines that call it, beside what it must do: a slice of items, and who waits. Time is
// virtual and passes for a tick alone, so a goroutine that was not woken stays parked. Which of several callers gets
// the room is the code's choice; how many do is not, nor is what the others hear.
type workPair struct {
	work  *Work[int]
	guard Guard

	items         []int // that are in and not done, the oldest first
	taken         int   // how many of these the carrier has
	waits         []int // items of callers that wait for room
	idle          bool  // the carrier waits for work
	closed, ended bool  // ended is the Guard

	mu   sync.Mutex    // for the race detector, which does not know that all are at rest
	out  map[int]error // what Push has returned, by item
	next []int         // what Next has returned: an item, or closedNext
}

// closedNext stands for Next's ErrClosed.
const closedNext = -1

func (p *workPair) push(item int) {
	p.waits = append(p.waits, item)
	go func() {
		err := p.work.Push(item)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.out[item] = err
	}()
}

func (p *workPair) take() {
	p.idle = true
	go func() {
		got := closedNext
		if item, err := p.work.Next(); err == nil {
			got = *item
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.next = append(p.next, got)
	}()
}

// settle waits until nobody runs, and says what is not as it must be. look are the callers who look whether there is
// room: they have come, or were woken.
func (p *workPair) settle(look []int) error {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	room, want := cap(p.work.ring)-len(p.items), error(nil)
	switch {
	case p.closed:
		room, want = 0, ErrClosed
	case p.ended:
		want = ErrDeadline
	}
	in := min(room, len(look))
	for item, err := range p.out {
		if !slices.Contains(look, item) {
			return fmt.Errorf("Push of %d returned %w, and nobody has woken it", item, err)
		}
		p.waits = slices.DeleteFunc(p.waits, func(i int) bool { return i == item })
		if err == nil {
			in--
			p.items = append(p.items, item)
		} else if !errors.Is(err, want) || want == nil {
			return fmt.Errorf("Push of %d returned %w, not %w", item, err, want)
		}
		look = slices.DeleteFunc(slices.Clone(look), func(i int) bool { return i == item })
	}
	clear(p.out)
	if in != 0 {
		return fmt.Errorf("%d more callers must get in", in)
	}
	if want != nil && len(look) > 0 {
		return fmt.Errorf("Push of %v waits on, and must return %w", look, want)
	}
	var next []int
	switch {
	case p.idle && p.taken < len(p.items):
		next = []int{p.items[p.taken]}
		p.taken++
	case p.idle && p.closed:
		next = []int{closedNext}
	}
	p.idle = p.idle && next == nil
	if !slices.Equal(next, p.next) {
		return fmt.Errorf("Next returned %v, not %v", p.next, next)
	}
	p.next = nil
	if n := p.work.Len(); n != len(p.items) {
		return fmt.Errorf("Len is %d, not %d", n, len(p.items))
	}
	return nil
}

// workMoves are what callers, the carrier and the Guard may do. Each returns the callers who look for room then.
var workMoves = []struct {
	name string
	can  func(p *workPair) bool
	do   func(p *workPair, number int) (look []int)
}{
	{"push", func(p *workPair) bool { return len(p.waits) < 3 }, func(p *workPair, number int) []int {
		p.push(number)
		return []int{number}
	}},
	{"next", func(p *workPair) bool { return !p.idle }, func(p *workPair, _ int) []int {
		p.take()
		return nil
	}},
	{"done", func(p *workPair) bool { return p.taken > 0 }, func(p *workPair, _ int) []int {
		p.work.Done()
		p.items, p.taken = p.items[1:], p.taken-1
		return p.waits
	}},
	{"tick", func(*workPair) bool { return true }, func(p *workPair, _ int) []int {
		time.Sleep(tickPeriod)
		return p.waits
	}},
	{"end", func(*workPair) bool { return true }, func(p *workPair, _ int) []int {
		p.guard.SetDeadline(Now() - 1)
		p.ended = true
		return nil
	}},
	{"renew", func(*workPair) bool { return true }, func(p *workPair, _ int) []int {
		p.guard.SetDeadline(0) // the next operation has a deadline of its own
		p.ended = false
		return nil
	}},
	{"close", func(*workPair) bool { return true }, func(p *workPair, _ int) []int {
		p.work.Close()
		p.closed = true
		return p.waits
	}},
}

// run does moves that are possible, then closes the Work and has the carrier carry out what is left. told is what was
// done.
func (p *workPair) run(moves []int) (told string, err error) {
	time.Sleep(time.Millisecond) // so that a deadline can lie in the past
	do := func(move, number int) {
		if m := workMoves[move]; err == nil && m.can(p) {
			told += m.name + "\n"
			err = p.settle(slices.Clone(m.do(p, number)))
		}
	}
	for i, move := range moves {
		do(move, i)
	}
	do(len(workMoves)-1, 0)
	for err == nil && len(p.items) > 0 {
		do(1, 0)
		do(2, 0)
	}
	p.work.Close()
	return told, err
}

// TestWorkModel: whatever is done in whatever order, items come out once and in order, no wake-up is lost, and each
// call that cannot succeed any more says why. model/work.pml shows this of all interleavings of critical sections.
func TestWorkModel(t *testing.T) {
	noLeaks(t)
	rapid.Check(t, func(r *rapid.T) {
		capacity := rapid.IntRange(1, 3).Draw(r, "capacity")
		often := rapid.SampledFrom([]int{0, 0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 5})
		moves := rapid.SliceOfN(often, 0, 300).Draw(r, "moves")
		moves = append(moves, rapid.SliceOfN(rapid.IntRange(0, len(workMoves)-1), 0, 20).Draw(r, "last moves")...)
		var told string
		var err error
		inBubble(t, func(*testing.T) {
			p := &workPair{out: map[int]error{}}
			p.work = NewWork[int](capacity, &p.guard)
			told, err = p.run(moves)
		})
		if err != nil {
			r.Fatalf("capacity %d\n%s%v", capacity, told, err)
		}
	})
}
