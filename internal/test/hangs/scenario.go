package hangs

import (
	"fmt"
	"slices"
	"time"
)

// A Scenario is a job that stands still, or seems to.
type Scenario struct {
	Name   string // "rank stands still, 16 ranks"
	Kind   string
	Ranks  int
	Reason string // the right answer: that of hang.Reason
	Blame  []int  // the ranks to blame, ascending; none where nobody is
	Fault  []int  // ranks that may be named: those at whom the fault lies
	Says   string // what the sentence has to have in it, "" if nothing
	Note   string // what the notes or the sentence have to have in them

	job    *job
	seed   uint64
	late   time.Duration // how long after the time-out the dumps are
	spoilt int           // the rank whose dump is of an earlier run, -1 if none
	lost   int           // the node whose dumps nobody has fetched, -1 if none
	torn   int           // the rank whose dump is cut off, -1 if none
	alone  int           // the one rank that has left a dump, and no log and no RAS; -1 if all have
	log    []string      // lines of launchers, of the kernel, of NCCL
	raised string        // the exception of the first Fault
	stacks bool          // py-spy has been run
	well   bool          // nothing hangs: dumps are of this moment
}

// PerKind is how many scenarios there are of each kind.
const PerKind = 4

// All are the scenarios, PerKind of each kind, the same for the same seed. Those of the documents are of seed 0.
func All(seed uint64) (all []*Scenario) {
	for i, k := range kinds {
		for v := range PerKind {
			n := k.ranks[v]
			s := &Scenario{Kind: k.name, Ranks: n, Name: fmt.Sprintf("%s, %d ranks", k.name, n), seed: 1_000_000*seed +
				uint64(1000*i+v), spoilt: -1, alone: -1, lost: -1, torn: -1}
			k.make(s)
			if n > 2*perHost && k.lossy {
				s.lost = (s.Fault[0]/perHost + 3) % (n / perHost)
			}
			if n > 4 && n <= 2*perHost && k.lossy {
				s.torn = (s.Fault[0] + 1 + v) % n
			}
			if seed%2 == 1 || v%2 == 1 {
				s.job.drift()
			}
			s.job.timed = k.timed || (i+v/2)%2 == 0
			all = append(all, s)
		}
	}
	return all
}

// drift sets the clocks of nodes apart, by less than a time-out.
func (j *job) drift() {
	for r := range j.ranks {
		if r%perHost == 0 {
			j.apart = time.Duration(j.r.Int64N(int64(j.limit/2))) - j.limit/4
		}
		j.ranks[r].skew += min(max(j.apart, -20*time.Second), 20*time.Second)
	}
}

type kind struct {
	name  string
	ranks [PerKind]int
	make  func(*Scenario)
	timed bool // start times alone tell it
	lossy bool // a node's dumps that nobody has fetched hide nothing: of the largest job they are missing
}

var (
	many  = [PerKind]int{3, 8, 16, 64}
	any2  = [PerKind]int{2, 4, 16, 64}
	grids = [PerKind]int{4, 8, 16, 64}
)

var kinds = []kind{
	{name: "stands still", ranks: any2, make: standsStill, lossy: true},
	{name: "leaves a call out", ranks: many, make: leavesOut, lossy: true},
	{name: "calls one more", ranks: many, make: callsOneMore, lossy: true},
	{name: "calls another", ranks: many, make: callsAnother, lossy: true},
	{name: "another size", ranks: many, make: anotherSize, lossy: true},
	{name: "groups in another order", ranks: many, make: otherOrder, lossy: true},
	{name: "stopped (SIGSTOP)", ranks: many, make: sigstop},
	{name: "killed (SIGKILL)", ranks: any2, make: sigkill, lossy: true},
	{name: "killed, memory was short", ranks: many, make: oomKill, lossy: true},
	{name: "exception", ranks: any2, make: exception, lossy: true},
	{name: "asleep in the data loader", ranks: any2, make: dataLoader, lossy: true},
	{name: "a kernel spins", ranks: many, make: kernelSpins, timed: true},
	{name: "two streams crossed", ranks: any2, make: crossed, timed: true},
	{name: "another root", ranks: many, make: otherRoot},
	{name: "slow, not stuck", ranks: any2, make: slow},
	{name: "watchdog too short", ranks: any2, make: short},
	{name: "a dump of before", ranks: many, make: oldDump, lossy: true},
	{name: "one rank's dump alone", ranks: many, make: oneAlone},
	{name: "a group that one has not made", ranks: many, make: notMade},
	{name: "stands still in a grid of groups", ranks: grids, make: inGrid, lossy: true},
	{name: "stands still in a pipeline", ranks: any2, make: inPipeline},
	{name: "the network", ranks: any2, make: network},
	{name: "a message of another size", ranks: any2, make: otherMessage},
	{name: "one batch fewer", ranks: many, make: fewerBatches, lossy: true},
	{name: "well", ranks: any2, make: well},
	{name: "a kernel spins in a grid of groups", ranks: grids, make: spinsInGrid, timed: true},
	{name: "another order in parts of a job", ranks: [PerKind]int{4, 8, 8, 6}, make: orderInParts},
	{name: "another order without earlier steps", ranks: [PerKind]int{4, 8, 8, 6}, make: orderAtFirst},
	{name: "a call that a part leaves out", ranks: [PerKind]int{4, 8, 8, 6}, make: newCallInParts},
}

func collective(group int, kind string, size int64, line string) op {
	return op{group: group, kind: kind, size: size, peer: -1, line: line}
}

var sync = op{kind: "sync", peer: -1}

// training is some steps of a data-parallel program: buckets of gradients, a gather, now and then a broadcast.
func training(steps int) (p []op) {
	for i := range steps {
		for k := range 3 {
			p = append(p, collective(0, "all_reduce", int64(1000*(k+1)), fmt.Sprintf("train.py:%d in step", 40+k)))
		}
		p = append(p, collective(0, "_all_gather_base", 64, "train.py:50 in gather"), sync)
		if i%2 == 1 {
			p = append(p, collective(0, "broadcast", 8, "train.py:60 in share"), sync)
		}
	}
	return p
}

// all has every rank run a program, each its own copy.
func (s *Scenario) all(p []op, groups ...[]int) {
	s.job = newJob(s.seed, s.Ranks, groups...)
	for r := range s.job.ranks {
		s.job.ranks[r].program = slices.Clone(p)
	}
}

// odd is the rank at which the fault lies.
func (s *Scenario) odd() int {
	r := s.job.r.IntN(s.Ranks)
	s.Fault = []int{r}
	return r
}

// place is the index of a collective with no sync behind it, so that others follow, and enough others before.
func (s *Scenario) place(p []op) int {
	for {
		i := len(p)/3 + s.job.r.IntN(len(p)/3)
		if p[i].kind == "all_reduce" && p[i+1].kind == "all_reduce" {
			return i
		}
	}
}

func (s *Scenario) blame(reason string, ranks ...int) {
	s.Reason, s.Blame = reason, ranks
}

func insert(p []op, at int, more ...op) []op { return slices.Insert(slices.Clone(p), at, more...) }

// train has all ranks train, but for one whose program is changed at some collective.
func (s *Scenario) train(change func(p []op, at int) []op) (odd int) {
	s.all(training(8))
	odd = s.odd()
	k := &s.job.ranks[odd]
	k.program = change(k.program, s.place(k.program))
	return odd
}

// does has the odd rank do something before a collective.
func (s *Scenario) does(what op) (odd int) {
	return s.train(func(p []op, at int) []op { return insert(p, at, what) })
}

func standsStill(s *Scenario) {
	s.blame("absent", s.does(op{kind: "halt", where: "loop"}))
	s.Says = "never called all_reduce"
}

func leavesOut(s *Scenario) {
	s.blame("different", s.train(func(p []op, at int) []op { return slices.Delete(p, at, at+1) }))
	s.Says = "left out all_reduce"
}

func callsOneMore(s *Scenario) {
	s.blame("different", s.does(collective(0, "reduce", 7, "metrics.py:9 in log")))
	s.Says = "metrics.py:9 in log"
}

func callsAnother(s *Scenario) {
	s.blame("different", s.train(func(p []op, at int) []op {
		p[at].kind, p[at].line = "reduce", "train.py:77 in rare"
		return p
	}))
	s.Says = "train.py:77 in rare"
}

func anotherSize(s *Scenario) {
	s.blame("shapes", s.train(func(p []op, at int) []op {
		p[at].size++
		return p
	}))
}

// otherOrder has two groups of all ranks, as two models have.
func otherOrder(s *Scenario) {
	var p []op
	for range 5 {
		p = append(p, collective(0, "all_reduce", 100, "a.py:1 in f"), sync, collective(1, "all_reduce", 100, "b.py:2 in g"),
			sync)
	}
	s.all(p, span(s.Ranks))
	odd := s.odd()
	k := &s.job.ranks[odd]
	at := 4 * (1 + s.job.r.IntN(4))
	k.program[at], k.program[at+2] = k.program[at+2], k.program[at]
	s.blame("order", odd)
}

func sigstop(s *Scenario) {
	odd := s.does(op{kind: "halt", where: "loop"})
	s.job.ranks[odd].stopped = true
	s.blame("silent", odd)
}

func (s *Scenario) dies() int {
	odd := s.does(op{kind: "die"})
	s.blame("died", odd)
	return odd
}

func sigkill(s *Scenario) {
	odd := s.dies()
	s.log = torchrun(s, odd, -9, fmt.Sprintf("Signal 9 (SIGKILL) received by PID %d", pid(odd)))
	s.Says = "SIGKILL"
}

func oomKill(s *Scenario) {
	odd := s.dies()
	s.log = []string{
		"[845211.113] python invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0",
		fmt.Sprintf("[845211.420] Out of memory: Killed process %d (python) total-vm:812345678kB, anon-rss:498765432kB, "+
			"file-rss:0kB, shmem-rss:0kB", pid(odd)),
	}
	s.Says = "memory was short"
}

func exception(s *Scenario) {
	odd := s.dies()
	s.raised = "ValueError: expected 32 labels, got 31"
	s.log = torchrun(s, odd, 1, "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html")
	s.Says = "ValueError: expected 32 labels, got 31 (loss.py:88 in compute)"
}

func dataLoader(s *Scenario) {
	s.blame("absent", s.does(op{kind: "halt", where: "loader"}))
	s.stacks = true
	s.Says = "train.py:31 in batches, in the data loader"
}

func kernelSpins(s *Scenario) { s.blame("blocked", s.does(op{kind: "spin"})) }

// crossed has GPUs that run one collective at a time, and one GPU takes the collectives of two groups in the other
// order, though all hosts made them alike.
func crossed(s *Scenario) {
	var p []op
	for range 4 {
		p = append(p, collective(0, "all_reduce", 100, "a.py:1 in f"), collective(1, "all_reduce", 100, "b.py:2 in g"), sync)
	}
	s.all(p, span(s.Ranks))
	odd := s.odd()
	for r := range s.job.ranks {
		s.job.ranks[r].single = true
	}
	s.job.ranks[odd].swap = 4
	s.blame("order", odd)
	if s.Ranks == 2 {
		s.blame("order", 0, 1)
		s.Fault = []int{0, 1}
	}
}

func otherRoot(s *Scenario) {
	s.all(training(8))
	odd := s.odd()
	k := &s.job.ranks[odd]
	for i := range k.program {
		if k.program[i].kind == "broadcast" && i > len(k.program)/2 {
			k.program[i].root = 1
			break
		}
	}
	s.blame("roots", odd)
	s.Says = "root 1"
}

// slow is a rank that came, after the others had given up.
func slow(s *Scenario) {
	s.all(training(8)) // whose limit the pause is longer than
	odd := s.odd()
	k := &s.job.ranks[odd]
	k.program = insert(k.program, s.place(k.program),
		op{kind: "pause", lasts: s.job.limit + 2*time.Minute, where: "checkpoint"})
	s.late = 5 * time.Minute
	if s.Ranks > 4 {
		s.job.dead, s.job.cut = true, s.job.limit+time.Minute // the others have given up, and their communicators are gone
	}
	s.blame("slow", odd)
}

// short is a job that has always paused for nearly as long as its time-out.
func short(s *Scenario) {
	p := training(8)
	s.all(p)
	s.job.limit = 20 * time.Second
	odd := s.odd()
	k := &s.job.ranks[odd]
	for i, pause := range []time.Duration{14, 16, 15, 24} {
		at := 0
		for n := 0; n <= 2*i+1; at++ {
			if k.program[at].kind == "_all_gather_base" {
				n++
			}
		}
		k.program = insert(k.program, at+1, op{kind: "pause", lasts: pause * time.Second, where: "checkpoint"})
	}
	s.blame("short")
	s.Says = "20s"
}

func oldDump(s *Scenario) {
	standsStill(s)
	s.spoilt = (s.Fault[0] + 1) % s.Ranks
	s.Says = ""
	s.Note = "another run"
	s.blame("absent", s.Fault[0])
}

func oneAlone(s *Scenario) {
	standsStill(s)
	s.alone = (s.Fault[0] + 1) % s.Ranks
	s.Says = "are missing"
	if s.Ranks == 2 {
		s.Says = "is missing"
	}
	s.blame("unknown")
}

func notMade(s *Scenario) {
	s.all(nil, span(s.Ranks))
	odd := s.odd()
	p := training(4)
	tail := []op{collective(1, "all_reduce", 8, "eval.py:3 in score"), sync}
	for r := range s.job.ranks {
		k := &s.job.ranks[r]
		k.program = slices.Concat(p, tail)
		if r == odd {
			k.program = slices.Concat(p, []op{{kind: "halt", where: "loop"}})
			k.unmade = []int{1}
		}
	}
	s.blame("not-made", odd)
}

// Grid is ranks in rows and columns, each of which is a group, as tensor and data parallelism have them.
func Grid(rows, columns int) (groups [][]int) {
	for r := range rows {
		var row []int
		for c := range columns {
			row = append(row, r*columns+c)
		}
		groups = append(groups, row)
	}
	for c := range columns {
		var column []int
		for r := range rows {
			column = append(column, r*columns+c)
		}
		groups = append(groups, column)
	}
	return groups
}

func inGrid(s *Scenario) { s.grid(op{kind: "halt", where: "loop"}, "absent") }

func spinsInGrid(s *Scenario) { s.grid(op{kind: "spin"}, "blocked") }

func (s *Scenario) grid(fault op, reason string) {
	columns := map[int]int{4: 2, 8: 4, 16: 4, 64: 8}[s.Ranks]
	rows := s.Ranks / columns
	s.all(nil, Grid(rows, columns)...)
	odd := s.odd()
	for r := range s.job.ranks {
		var p []op
		for range 6 {
			p = append(p, collective(1+r/columns, "all_reduce", 100, "model.py:10 in forward"), sync,
				collective(1+rows+r%columns, "all_reduce", 1000, "model.py:20 in backward"), sync)
		}
		if r == odd {
			at := 8 + s.job.r.IntN(8)
			if fault.kind == "spin" {
				at &^= 1 // before a call, and not before the wait for it
			}
			p = insert(p, at, fault)
		}
		s.job.ranks[r].program = p
	}
	s.blame(reason, odd)
}

// parts has groups of some ranks each beside the default one. Of an order of both only members of both know, and which
// of two ranks is right say their own earlier steps. do gives what a rank does after these.
func (s *Scenario) parts(steps int, do func(own, all op, odd bool) []op) (mates []int) {
	size := map[int]int{4: 2, 6: 3}[s.Ranks]
	if size == 0 {
		size = 2 + 2*int(s.seed%2)
	}
	var groups [][]int
	for ranks := range slices.Chunk(span(s.Ranks), size) {
		groups = append(groups, ranks)
	}
	s.all(nil, groups...)
	odd := s.odd()
	for r := range s.job.ranks {
		own := collective(1+r/size, "all_reduce", 100, "model.py:10 in forward")
		all := collective(0, "all_reduce", 1000, "model.py:20 in backward")
		p := slices.Repeat([]op{own, sync, own, sync, all, sync}, steps)
		s.job.ranks[r].program = append(p, do(own, all, r == odd)...)
	}
	s.blame("order", odd)
	if mates = groups[odd/size]; size == 2 {
		s.Fault = mates // RAS tells no earlier steps
	}
	return mates
}

func orderInParts(s *Scenario) {
	leaves := s.seed%4 > 1 // it leaves a call out
	s.parts(4, func(own, all op, odd bool) []op {
		switch {
		case !odd:
			return []op{own, sync, own, sync, all, sync, own, sync}
		case leaves:
			return []op{own, sync, all, sync, own, sync}
		}
		return []op{all, sync, own, sync, own, sync}
	})
}

// orderAtFirst is wrong in the first step: in parts of two ranks nobody knows which of them is.
func orderAtFirst(s *Scenario) {
	mates := s.parts(0, func(own, all op, odd bool) []op {
		if odd {
			return []op{all, sync, own, sync, own, sync}
		}
		return []op{own, sync, own, sync, all, sync, own, sync}
	})
	if len(mates) == 2 {
		s.blame("order", mates...)
	}
}

// newCallInParts is a call that one rank leaves out, and that all others make for the first time.
func newCallInParts(s *Scenario) {
	mates := s.parts(4, func(own, all op, odd bool) []op {
		p := []op{own, sync, own, sync, all, sync, own, sync}
		if !odd {
			p = slices.Concat([]op{collective(0, "broadcast", 8, "log.py:3 in log"), sync}, p)
		}
		return p
	})
	if len(mates) == 2 {
		s.blame("order", mates...)
	}
}

func pipeline(s *Scenario) {
	s.all(nil)
	for r := range s.job.ranks {
		var p []op
		for range 6 {
			if r > 0 {
				p = append(p, op{kind: "recv", size: 64, peer: r - 1, line: "pipe.py:5 in stage"}, sync)
			}
			if r < s.Ranks-1 {
				p = append(p, op{kind: "send", size: 64, peer: r + 1, send: true, line: "pipe.py:9 in stage"}, sync)
			}
		}
		s.job.ranks[r].program = p
	}
}

func inPipeline(s *Scenario) {
	pipeline(s)
	odd := s.odd()
	k := &s.job.ranks[odd]
	k.program = insert(k.program, 2+s.job.r.IntN(4), op{kind: "halt", where: "loop"})
	s.blame("absent", odd)
}

func network(s *Scenario) {
	s.all(training(8))
	s.job.dead, s.job.cut = true, 20*time.Millisecond
	odd := s.odd()
	s.log = []string{fmt.Sprintf("%s NCCL WARN NET/IB : Got completion from peer 10.0.0.9<43433> with status=12 "+
		"opcode=1 len=0 vendor err 129 (Recv) hca mlx5_0", head(odd))}
	s.Fault = nil
	s.blame("stuck")
	s.Note = "10.0.0.9"
}

func otherMessage(s *Scenario) {
	pipeline(s)
	odd := s.job.r.IntN(s.Ranks - 1)
	k := &s.job.ranks[odd]
	for i := len(k.program) / 2; ; i++ {
		if k.program[i].kind == "send" {
			k.program[i].size++
			break
		}
	}
	s.Fault = []int{odd, odd + 1}
	s.blame("shapes", odd, odd+1)
}

// fewerBatches is a rank whose data end a step before those of the others: it goes on to the barrier.
func fewerBatches(s *Scenario) {
	end := []op{collective(0, "barrier", 1, "train.py:90 in main"), sync}
	s.all(slices.Concat(training(7), end))
	odd := s.odd()
	s.job.ranks[odd].program = slices.Concat(training(6), end)
	s.blame("different", odd)
}

func well(s *Scenario) {
	s.all(training(6))
	s.well = true
	s.blame("nothing")
}
