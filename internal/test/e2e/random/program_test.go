// Package random runs random programs of several ranks: a seed says what each rank does, where the ranks are and how
// one of them ends.
package random

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
)

// A program is what all ranks do. It is a pure function of its seed.
type program struct {
	seed      uint64
	ranks     int // that begin; Grow takes in one more
	processes bool
	gpus      bool
	transport string
	slotBytes int
	steps     []step
	end       string // how one rank ends early, "" if none does: Close, Abort, exit, return, kill, deadline
	ender     int
	at        int // the step before which the ender ends

	machine *gpu.Machine // if ranks have GPUs
}

// The steps of a program.
const (
	letters    = "letters"    // messages in one order, which each rank cuts into groups as it likes
	collective = "collective" // Do
	bounded    = "bounded"    // the same by DoContext
	started    = "started"    // several, by Start and Wait
	split      = "split"      // parts, with a collective in each
	shrink     = "shrink"
	grow       = "grow"
)

// A step is the same of all ranks.
type step struct {
	do      string
	kind    ringo.Kind
	count   int
	root    int
	times   int // of started
	parts   int // of split
	letters []letter
}

// A letter is a message of a number of bytes.
type letter struct{ from, to, bytes int }

var kinds = []ringo.Kind{ringo.KindBarrier, ringo.KindAllReduce, ringo.KindReduce, ringo.KindBroadcast,
	ringo.KindAllGather,
	ringo.KindReduceScatter, ringo.KindAlltoAll, ringo.KindGather, ringo.KindScatter}

// newProgram is the program of a seed.
func newProgram(seed uint64) *program {
	dice := rand.New(rand.NewPCG(seed, 23))
	p := &program{seed: seed, ranks: 2 + dice.IntN(4), processes: dice.IntN(4) == 0, gpus: dice.IntN(10) == 0}
	p.transport = []string{"shm", "socket", "socket tcp"}[dice.IntN(3)]
	if !p.processes && dice.IntN(2) == 0 {
		p.transport = "inproc"
	}
	if p.gpus {
		p.transport = ""
	}
	p.slotBytes = []int{256, 4096, 0}[dice.IntN(3)]
	n := p.ranks
	for range 2 + dice.IntN(7) {
		s := p.newStep(dice, n)
		if s.do == grow {
			n++
		}
		p.steps = append(p.steps, s)
	}
	if p.ranks > 2 && dice.IntN(5) > 0 {
		ends := []string{"Close", "Abort", "deadline"}
		if p.processes {
			ends = append(ends, "exit", "return", "kill")
		}
		p.end, p.ender, p.at = ends[dice.IntN(len(ends))], dice.IntN(p.ranks), dice.IntN(len(p.steps)+1)
		if p.gpus && p.end == "deadline" { // a deadline bounds only the queueing there
			p.end = "Abort"
		}
	}
	return p
}

// newStep is a step of n ranks.
func (p *program) newStep(dice *rand.Rand, n int) step {
	counts, bytes := []int{1, 7, 1000, 40_000, 700_000}, []int{1, 8, 1000, 5000, 70_000, 3 << 20}
	most := 1 + dice.IntN(30)
	if p.gpus || p.slotBytes == 256 {
		counts, bytes = counts[:3], bytes[:4]
	}
	s := step{kind: kinds[dice.IntN(len(kinds))], count: counts[dice.IntN(len(counts))], root: dice.IntN(n), times: 1}
	switch x := dice.IntN(20); {
	case x < 7:
		s.do = letters
		for range most {
			s.letters = append(s.letters, letter{dice.IntN(n), dice.IntN(n), bytes[dice.IntN(len(bytes))]})
		}
	case x < 11:
		s.do = collective
	case x < 13:
		s.do = bounded
	case x < 15:
		s.do, s.times = started, 2+dice.IntN(4)
	case x < 18:
		s.do, s.parts, s.root = split, 1+dice.IntN(3), 0
	case x == 18 && p.growth() < 0:
		s.do = grow
	default:
		s.do = shrink
	}
	return s
}

// growth is the step that takes in a rank, -1 if none does.
func (p *program) growth() int {
	for i := range p.steps {
		if p.steps[i].do == grow {
			return i
		}
	}
	return -1
}

// grows reports whether a rank comes in before one ends.
func (p *program) grows() bool { return p.growth() >= 0 && (p.end == "" || p.at > p.growth()) }

// harmless reports whether nobody waits for the rank that ends, as it has done all steps and says goodbye.
func (p *program) harmless() bool { return p.end == "" || p.at == len(p.steps) && p.end == "Close" }

// survivors are the numbers of the ranks that go on after the end of one.
func (p *program) survivors() (list []int32) {
	n := p.ranks
	if p.grows() {
		n++
	}
	for r := range n {
		if r != p.ender || p.end == "deadline" {
			list = append(list, int32(r))
		}
	}
	return list
}

// String is the program in a line.
func (p *program) String() string {
	var b strings.Builder
	where, memory := "goroutines", "host memory"
	if p.processes {
		where = "processes"
	}
	if p.gpus {
		memory = "emulated GPUs"
	}
	fmt.Fprintf(&b, "seed %d: %d %s, %s, %s, slots of %d:", p.seed, p.ranks, where, memory, p.transport, p.slotBytes)
	for i := range p.steps {
		if p.end != "" && p.at == i {
			fmt.Fprintf(&b, " [rank %d: %s]", p.ender, p.end)
		}
		switch s := &p.steps[i]; s.do {
		case letters:
			fmt.Fprintf(&b, " %d letters,", len(s.letters))
		case shrink, grow:
			fmt.Fprintf(&b, " %s,", s.do)
		default:
			fmt.Fprintf(&b, " %s %v(%d, root %d)×%d", s.do, s.kind, s.count, s.root, s.times)
			if s.do == split {
				fmt.Fprintf(&b, " in %d parts", s.parts)
			}
			b.WriteString(",")
		}
	}
	if p.end != "" && p.at == len(p.steps) {
		fmt.Fprintf(&b, " [rank %d: %s]", p.ender, p.end)
	}
	return b.String()
}
