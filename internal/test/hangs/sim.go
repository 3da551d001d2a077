// Package hangs makes jobs that stand still, each with its one right answer, and writes what their ranks would have
// left behind: dumps of PyTorch's flight recorder, answers of NCCL's RAS, logs of NCCL, of PyTorch and of launchers,
// and stacks, with the noise of real ones. The tests of "ringo why" read them. Nothing here is taken from the readers:
// the formats are written as PyTorch, NCCL and py-spy write them.
//
// A Scenario is a program of each rank and a fault. It is carried out in virtual time, in PyTorch's order of calls: a
// host enqueues calls and goes on, each group has a stream of its own on each GPU, a call begins when those before it
// on its stream have ended, and ends when all members have begun it. The watchdog fires when the first call has waited
// for its time-out, and the dumps are of that moment.
package hangs

import (
	"math/rand/v2"
	"time"
)

// An op is something that a rank's program does.
type op struct {
	kind  string // of a call: "all_reduce"; or "sync", "pause", "halt", "die", "spin"
	group int
	size  int64
	root  int // of the group
	peer  int // global, of a message; -1 else
	send  bool
	line  string        // "train.py:40 in step"
	lasts time.Duration // of a pause
	where string        // of a pause or a halt: what the stack is of, one of stacks
}

// A call is what a rank has enqueued.
type call struct {
	op
	number int64 // among the collectives or the messages of its group, from 1
	at     time.Duration
	begun  time.Duration // never if not
	ended  time.Duration
}

const never = time.Duration(1 << 62)

// A job is programs of ranks that are carried out.
type job struct {
	groups [][]int // global ranks; the first has all
	ranks  []rank
	limit  time.Duration
	start  time.Time
	r      *rand.Rand
	apart  time.Duration // of the clock of the node that drift looks at
	dead   bool          // the network: nothing ends from the time cut on
	cut    time.Duration
	timed  bool // dumps have when calls began: TORCH_NCCL_ENABLE_TIMING=1, which is not PyTorch's default
}

// A rank is one process.
type rank struct {
	program []op
	next    int
	clock   time.Duration // of its host's program
	skew    time.Duration // of its host's clock
	calls   []call
	numbers map[int]int64
	msgs    map[int]int64
	spins   bool // its GPU does not end what is before the next call
	died    time.Duration
	ended   bool // the program has come to its end
	stopped bool // by a signal: it answers nothing
	single  bool // its GPU runs one collective at a time, of whichever group
	swap    int  // the call which it takes after the next one, 0 if none
	unmade  []int
	where   string // of the pause or halt that it is in
	since   time.Duration
}

func newJob(seed uint64, ranks int, groups ...[]int) *job {
	j := &job{limit: 10 * time.Minute, start: time.Unix(1_760_000_000, 0), r: rand.New(rand.NewPCG(seed, 2029)),
		groups: append([][]int{span(ranks)}, groups...)}
	for range ranks {
		j.ranks = append(j.ranks, rank{numbers: map[int]int64{}, msgs: map[int]int64{}, died: never,
			skew: time.Duration(j.r.IntN(400)-200) * time.Millisecond})
	}
	return j
}

func span(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// run carries out, until a time, all steps that can be.
func (j *job) run(until time.Duration) {
	for moved := true; moved; {
		moved = false
		for r := range j.ranks {
			for j.host(r, until) {
				moved = true
			}
		}
		for r := range j.ranks {
			moved = j.gpu(r) || moved
		}
	}
}

// host makes the next step of a rank's program, if it can.
func (j *job) host(r int, until time.Duration) bool {
	k := &j.ranks[r]
	if k.next == len(k.program) {
		k.ended = true
		return false
	}
	if k.clock > until || k.died < never {
		return false
	}
	o := k.program[k.next]
	switch o.kind {
	case "halt":
		k.where, k.since = o.where, k.clock
		return false
	case "sync":
		if k.spins {
			return false
		}
		for _, c := range k.calls {
			if c.ended == never {
				return false
			}
			k.clock = max(k.clock, c.ended)
		}
	case "pause":
		if k.where, k.since = o.where, k.clock; k.clock+o.lasts > until {
			return false
		}
		k.clock += o.lasts
		k.where = ""
	case "die":
		k.died = k.clock
		k.next++
		return true
	case "spin":
		k.spins = true
	default:
		k.clock += time.Duration(50+j.r.IntN(2000)) * time.Microsecond
		if k.clock > until {
			return false
		}
		c := call{op: o, at: k.clock, begun: never, ended: never}
		if o.peer >= 0 {
			k.msgs[o.group]++
			c.number = k.msgs[o.group]
		} else {
			k.numbers[o.group]++
			c.number = k.numbers[o.group]
		}
		if k.spins {
			c.line += "\x00" // it is behind what spins
		}
		k.calls = append(k.calls, c)
	}
	k.next++
	return true
}

func (c *call) spun() bool { return len(c.line) > 0 && c.line[len(c.line)-1] == 0 }

// gpu begins and ends calls of a rank.
func (j *job) gpu(r int) (moved bool) {
	k := &j.ranks[r]
	free := map[int]time.Duration{} // by stream: when it can begin the next
	for _, i := range k.order() {
		c := &k.calls[i]
		stream := c.group
		if k.single {
			stream = 0
		}
		f := free[stream]
		if c.spun() || f == never {
			continue
		}
		if c.begun == never {
			c.begun, moved = max(c.at, f)+20*time.Microsecond, true
		}
		if c.ended == never {
			if t, ok := j.meet(r, c); ok {
				c.ended, moved = t, true
			}
		}
		free[stream] = c.ended
	}
	return moved
}

// order has the calls as the GPU takes them: in the order of the host, but for two that are swapped.
func (k *rank) order() []int {
	all := span(len(k.calls))
	if i := k.swap; i > 0 {
		if i+1 == len(all) { // the GPU waits for the other one
			return all[:i]
		}
		if i+1 < len(all) {
			all[i], all[i+1] = all[i+1], all[i]
		}
	}
	return all
}

// meet is when a call ends, if all others have begun it alike.
func (j *job) meet(r int, c *call) (end time.Duration, ok bool) {
	if c.peer >= 0 {
		k := &j.ranks[c.peer]
		n := int64(0)
		for i := range k.calls {
			o := &k.calls[i]
			if o.peer != r || o.send == c.send || o.group != c.group {
				continue
			}
			if n++; n == j.messages(r, c) {
				return max(c.begun, o.begun) + 300*time.Microsecond, o.begun != never && o.size == c.size
			}
		}
		return 0, false
	}
	end = c.begun
	for _, m := range j.groups[c.group] {
		met := false
		for i := range j.ranks[m].calls {
			o := &j.ranks[m].calls[i]
			if o.peer < 0 && o.group == c.group && o.number == c.number {
				met = o.begun != never && o.kind == c.kind && o.size == c.size && o.root == c.root
				end = max(end, o.begun)
			}
		}
		if !met {
			return 0, false
		}
	}
	end += 500 * time.Microsecond
	return end, !j.dead || end < j.cut
}

// messages is the number of a call among the messages to its peer, or from it.
func (j *job) messages(r int, c *call) (n int64) {
	for i := range j.ranks[r].calls {
		o := &j.ranks[r].calls[i]
		if o.peer == c.peer && o.send == c.send && o.group == c.group && o.number <= c.number {
			n++
		}
	}
	return n
}

// fires is when the first call has waited for its time-out, never if none has.
func (j *job) fires() time.Duration {
	first := never
	for r := range j.ranks {
		if j.ranks[r].stopped || j.ranks[r].died < never {
			continue
		}
		for _, c := range j.ranks[r].calls {
			if c.ended == never || c.ended-c.at > j.limit {
				first = min(first, c.at+j.limit)
			}
		}
	}
	return first
}

// seen are the calls that a rank has enqueued by a time, without the beginnings and ends that come later.
func (j *job) seen(r int, t time.Duration) (calls []call) {
	for _, c := range j.ranks[r].calls {
		if c.at > t {
			continue
		}
		if c.begun > t {
			c.begun = never
		}
		if c.ended > t {
			c.ended = never
		}
		if c.spun() {
			c.line = c.line[:len(c.line)-1]
		}
		calls = append(calls, c)
	}
	return calls
}
