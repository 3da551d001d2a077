package programs

import (
	"runtime"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels"
)

// killing proposes a program with Kills.
func (g *generator) killing(seed uint64) *Program {
	p := &Program{Seed: seed, Kills: true, Ranks: 2 + g.IntN(4), Apart: g.IntN(4) == 0, Host: g.IntN(10) > 0,
		Bytes: pick(g, 4<<10, 4<<10, 4<<10, 64<<10, 64<<10, 64<<10, 64<<10, 64<<10, 1<<20, 4<<20),
		Slot:  pick(g, 256, 4096, 0)}
	p.Apart = p.Apart || g.limit.Apart
	if p.Transport = pick(g, "shm", "socket", "socket+tcp"); p.Transport == "shm" && runtime.GOOS != "linux" {
		p.Transport = "socket"
	}
	if !p.Apart && g.IntN(2) == 0 {
		p.Transport = "inproc"
	}
	if !p.Host || p.Slot == 256 {
		p.Bytes = 4096
	}
	if !p.Host {
		p.Transport = ""
	}
	g.w = newWorld(p)
	steps, ends := 2+g.IntN(7), g.IntN(5) > 0
	for len(p.Steps) < steps {
		if ends && g.IntN(steps) == 0 {
			g.take(p, g.leave())
		}
		g.take(p, g.survival())
	}
	if ends && !p.leaves() {
		g.take(p, g.leave())
	}
	return p
}

// leave proposes how a rank ends, or is stopped.
func (g *generator) leave() Step {
	s := Step{Do: Leave, Rank: g.IntN(len(g.w.comms[0].members)), How: pick(g, "Close", "Abort", "deadline")}
	if g.w.p.Apart && g.IntN(3) > 0 {
		s.How = pick(g, "exit", "kill", "kill")
		if g.IntN(2) == 0 {
			s.After = 1 + g.IntN(20_000)
		}
		if g.IntN(8) == 0 {
			s = Step{Do: Stop, Rank: s.Rank, After: g.IntN(1_000_000)}
		}
	}
	return s
}

// survival proposes a step of all ranks.
func (g *generator) survival() Step {
	switch n := g.IntN(20); {
	case n < 7:
		return g.letters(1 + g.IntN(30))
	case n < 11:
		return g.alone()
	case n < 13:
		s := g.alone()
		s.By = "context"
		return s
	case n < 15:
		s := Step{Do: Group, By: "start"}
		for range 2 + g.IntN(4) {
			s.Calls = append(s.Calls, g.alone())
		}
		return s
	case n < 18:
		return Step{Do: Parts, Count: 1 + g.IntN(3), Calls: []Step{g.alone()}}
	case n == 18 && len(g.w.p.growths()) < 2:
		return Step{Do: Grow}
	}
	return Step{Do: Shrink}
}

// alone proposes a collective whose result hangs on no number of ranks.
func (g *generator) alone() Step {
	for {
		s := g.collective(0, Own)
		if !g.w.p.Host {
			s.Type = kernels.Int32 // each other one has a kernel to load
			if s.Kind.Reduces() {
				s.Op = kernels.KindSum
			}
		}
		if s.Kind.Variable() || s.Op == kernels.KindAvg || s.Kind == call.Barrier && g.IntN(4) > 0 {
			continue
		}
		if g.w.checkCall(&s) == nil {
			return s
		}
	}
}

// letters proposes messages in one order, so many at most.
func (g *generator) letters(most int) Step {
	s, at, n := Step{Do: Group}, 0, len(g.w.comms[0].members)
	for range most {
		k := Step{Do: Message, Type: kernels.Uint8, Count: pick(g, 1, 8, 1000, 5000, 70_000, 700_000, 3<<20), Out: 1,
			Sender: g.IntN(n), Recver: g.IntN(n), InAt: at, OutAt: at}
		if at+k.Count <= g.w.p.Bytes {
			s.Calls, at = append(s.Calls, k), at+k.Count
		}
	}
	return s // none, it may be, which makes no sense
}
