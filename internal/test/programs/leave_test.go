package programs

import "slices"

// leaveOf is the step by which a rank leaves, -1 if it stays.
func (p *Program) leaveOf(rank int) int {
	return slices.IndexFunc(p.Steps, func(s Step) bool { return s.Do == Leave && s.Rank == rank })
}

// leavers are the ranks that leave. Whose deadline passes stays.
func (p *Program) leavers() (list []int) {
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Do == Leave && s.How != "deadline" {
			list = append(list, s.Rank)
		}
	}
	return list
}

// growths are the steps that take in a rank.
func (p *Program) growths() (list []int) {
	for i := range p.Steps {
		if p.Steps[i].Do == Grow {
			list = append(list, i)
		}
	}
	return list
}

// leavesBefore reports whether a rank may leave before a step, leaves whether one does at all.
func (p *Program) leavesBefore(i int) bool {
	return slices.ContainsFunc(p.Steps[:i], func(s Step) bool { return s.Do == Leave })
}

func (p *Program) leaves() bool { return p.leavesBefore(len(p.Steps)) }

// has reports whether a rank leaves in this way.
func (p *Program) has(how string) bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Do == Leave && s.How == how })
}

// onlyDie reports whether all that leave do so as processes.
func (p *Program) onlyDie() bool { return !p.has("Close") && !p.has("Abort") && !p.has("deadline") }

// stops reports whether processes are stopped for a time.
func (p *Program) stops() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Do == Stop })
}

// each are the calls of a step.
func (s *Step) each() []Step {
	if s.Do == Group {
		return s.Calls
	}
	return []Step{*s}
}

// among is a step of n ranks, which may be other ones than the program has foreseen.
func (s *Step) among(n int) *Step {
	x := *s
	x.Root, x.Sender, x.Recver = x.Root%n, x.Sender%n, x.Recver%n
	x.Calls = slices.Clone(x.Calls)
	for i := range x.Calls {
		x.Calls[i] = *x.Calls[i].among(n)
	}
	return &x
}

// survival takes a step of a program with Kills, or says why it makes no sense.
func (w *world) survival(s *Step) error {
	c := w.comms[0]
	switch s.Do {
	case Call, Group:
		return w.call(s)
	case Parts:
		if s.Count < 1 || len(s.Calls) != 1 || s.Calls[0].Do != Call {
			return s.bad("no parts, or other than one call of each")
		}
		return w.checkCall(&s.Calls[0])
	case Grow:
		c.members = append(c.members, len(c.members))
	case Shrink:
	case Leave, Stop:
		apart := s.Do == Stop || s.How == "exit" || s.How == "kill"
		switch {
		case s.Rank < 0 || s.Rank >= len(c.members) || slices.Contains(w.left, s.Rank) || s.After < 0:
			return s.bad("no such rank")
		case apart && !w.p.Apart || !apart && !slices.Contains([]string{"Close", "Abort", "deadline"}, s.How):
			return s.bad("goroutines do not end so")
		case s.Do == Leave && len(w.left)+3 > len(c.members):
			return s.bad("too few would be left")
		case s.Do == Leave && len(w.left) > 0 && (w.deadline || s.How == "deadline"):
			return s.bad("a deadline is alone")
		case s.How == "deadline" && !w.p.Host:
			return s.bad("a deadline bounds only the queueing")
		}
		if s.Do == Leave {
			w.left, w.deadline = append(w.left, s.Rank), s.How == "deadline"
		}
	default:
		return s.bad("no step of programs with kills")
	}
	return nil
}
