package cudaemu

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/ringo-go/ringo/internal/emu/decision"
)

// An executor carries out the ops of all streams: on a goroutine of its own,
// or, if the machine is lazy, on that of a caller who waits. All fields are
// guarded by the machine's lock.
type executor struct {
	m        *Machine
	rng      *rand.Rand
	ready    []*op      // ops that wait for no other
	work     *sync.Cond // an op became ready
	progress *sync.Cond // an op was done
	stopped  bool
	rounds   uint64
	idles    uint64 // of rounds, those after which all work waits
	moved    uint64 // ops that have begun or ended

	threads int // of all kernels that run
	quiet   int // rounds in a row without change
	// mark is the number of instructions executed when quiet was a power of two the last time, since
	// that of the time before. Kernels that poll have looked since then.
	since, mark uint64
	changed     time.Time // the last time
	nudge       chan struct{}

	hostFuncs  []func()
	hostWork   *sync.Cond
	hostThread int // that runs host functions
	hostBusy   bool
	goroutines sync.WaitGroup
}

const (
	quantum     = 4096 // thread-instructions a round
	quietRounds = 4    // without change: then kernels that poll get less time
	// Less time is some 0.1 ms of work, up to three times as much for many threads, and about maxRest of rest. It must
	// suffice for a kernel whose threads look at host memory once in a thousand polls. The most is less than the default
	// of Config.StallInstructions, as nothing is known to change in a round.
	idleQuantum = 4 * quantum
	idleThread  = 12 // of each thread
	idleMost    = 12 * quantum
	maxRest     = time.Millisecond
	longQuiet   = 64 // from then on rests are long and rounds do as much as said above; before, a change may come soon
	ownRounds   = 4  // done by a waiting caller before it sleeps: quicker than waking the executor
)

func (e *executor) init(m *Machine) {
	e.m = m
	e.rng = rand.New(rand.NewPCG(m.cfg.Seed, 0x65786563))
	e.work, e.progress, e.hostWork = sync.NewCond(&m.mu), sync.NewCond(&m.mu), sync.NewCond(&m.mu)
	e.nudge = make(chan struct{}, 1)
	e.hostThread, e.changed = -1, time.Now()
	if m.cfg.Lazy {
		return
	}
	e.goroutines.Add(2)
	go e.run()
	go e.runHostFuncs()
}

// add makes an op ready.
func (e *executor) add(o *op) {
	e.ready = append(e.ready, o)
	o.added = e.rounds
	if book := e.m.cfg.Book; book.Follows() {
		if d, ok := book.Take(decision.Start, decision.Warp{}, o.number, 0); ok {
			o.hold = d.Wait
			book.Tell(d, decision.Scene{Kernel: o.name(), Line: 0})
		}
	}
	e.kick()
}

// kick wakes the executor: something may have changed.
func (e *executor) kick() {
	e.work.Signal()
	select {
	case e.nudge <- struct{}{}:
	default:
	}
}

func (e *executor) run() {
	defer e.goroutines.Done()
	m := e.m
	m.mu.Lock()
	defer m.mu.Unlock()
	for !e.stopped {
		if len(e.ready) == 0 {
			e.work.Wait()
			e.touch()
			continue
		}
		if e.round(); e.idle() {
			e.idles++
			e.rest()
		} else {
			e.breathe()
		}
	}
}

// idle reports whether all remaining work waits: for some rounds nothing has
// changed, and kernels have only polled.
func (e *executor) idle() bool {
	return e.quiet >= quietRounds && (e.threads == 0 || e.m.world.Polling(e.since))
}

// breathe lets callers have the lock.
func (e *executor) breathe() {
	if e.m.callers.Load() == 0 {
		return
	}
	e.m.mu.Unlock()
	for range 100 {
		if e.m.callers.Load() == 0 {
			break
		}
		runtime.Gosched()
	}
	e.m.mu.Lock()
}

// rest sleeps, since running kernels wait for the host or for another process.
func (e *executor) rest() {
	t := time.NewTimer(min(maxRest, time.Duration(max(1, e.quiet-quietRounds))*5*time.Microsecond))
	e.m.mu.Unlock()
	defer e.m.mu.Lock()
	defer t.Stop()
	select {
	case <-e.nudge:
	case <-t.C:
	}
}

// round does a step of each ready op and runs kernels for a while.
func (e *executor) round() {
	m := e.m
	e.rounds++
	before := m.mem.Changes()
	moved := false

	list := e.ready
	e.ready = nil
	random := !m.cfg.Plain && !m.cfg.Book.Follows()
	if random {
		e.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	slices.SortStableFunc(list, func(a, b *op) int { return a.priority - b.priority })
	left := list[:0]
	e.threads = 0
	for _, o := range list {
		switch {
		case o.hold > 0:
			o.hold--
			moved = true
		case !o.begun && random && e.rng.IntN(4) == 0: // another may be first
			moved = true
		default:
			moved = moved || !o.begun
			if wait := e.rounds - 1 - o.added; !o.begun && wait > 0 && m.cfg.Book.Records() {
				m.cfg.Book.Add(decision.Decision{Kind: decision.Start, At: o.number, Wait: int(wait)})
			}
			if e.step(o) {
				m.finish(o)
				moved = true
				continue
			}
		}
		left = append(left, o)
	}
	clear(list[len(left):])
	e.ready = append(left, e.ready...)

	if e.threads > 0 {
		n := quantum
		if e.idle() && e.quiet > longQuiet {
			n = min(max(idleQuantum, idleThread*e.threads), idleMost)
		}
		m.world.Step(n)
	}
	m.mem.Tick()

	if moved || m.mem.Changes() != before {
		e.touch()
	} else {
		e.quiet++
		if e.quiet&(e.quiet-1) == 0 {
			e.since, e.mark = e.mark, m.world.Instructions()
		}
	}
	if !m.cfg.Lazy && (e.hostBusy || time.Since(e.changed) < m.cfg.Stall) || m.cfg.Lazy && moved {
		m.world.Touch()
	}
	if moved {
		e.moved++
		e.progress.Broadcast()
	}
}

func (e *executor) touch() {
	e.quiet, e.changed = 0, time.Now()
}

// step is one step of an op. An op of a context that failed is dropped.
func (e *executor) step(o *op) (done bool) {
	if o.ctx != nil && o.ctx.broken() && o.grid == nil {
		if _, host := o.work.(hostWork); !host || !o.begun {
			return true
		}
	}
	done = o.work.step(e.m, o)
	o.begun = true
	if g := o.grid; g != nil && !done {
		e.threads += g.Dim[0] * g.Dim[1] * g.Dim[2] * g.Block[0] * g.Block[1] * g.Block[2]
	}
	return done
}

// wait waits until done is true, or false if the machine was closed.
func (e *executor) wait(done func() bool) bool {
	for i := 0; !done(); i++ {
		switch {
		case e.stopped:
			return false
		case e.m.cfg.Lazy:
			e.drive()
		case i < ownRounds && len(e.ready) > 0:
			e.round()
		default:
			e.progress.Wait()
		}
	}
	return true
}

// drive is a round on the goroutine of the caller.
func (e *executor) drive() {
	e.round()
	for len(e.hostFuncs) > 0 && !e.hostBusy {
		e.runHostFunc()
	}
	if len(e.ready) == 0 || e.idle() {
		e.rest()
	} else {
		e.breathe()
	}
}

// poke lets a lazy machine make progress in a call that queries.
func (e *executor) poke() {
	if e.m.cfg.Lazy && len(e.ready) > 0 && !e.stopped {
		e.drive()
	}
}

func (e *executor) stop() {
	e.stopped = true
	e.work.Broadcast()
	e.progress.Broadcast()
	e.hostWork.Broadcast()
	e.kick()
}

func (e *executor) join() { e.goroutines.Wait() }
