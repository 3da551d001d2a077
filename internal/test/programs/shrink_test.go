package programs

import "slices"

// Smaller makes a program smaller as long as it fails, and returns the smallest that it found.
// fails carries a program out; it is asked most times at most.
func Smaller(p *Program, most int, fails func(*Program) bool) *Program {
	if most == 0 {
		return p
	}
	asked := 0
	try := func(q *Program) bool {
		q = Repair(q)
		if asked >= most || q.String() == p.String() || newRunFails(q) {
			return false
		}
		if asked++; !fails(q) {
			return false
		}
		p = q
		return true
	}
	for again := true; again; {
		again = false
		for n := len(p.Steps) / 2; n > 0; n /= 2 { // without n steps
			for i := len(p.Steps) - n; i >= 0; i -= n {
				if i+n > len(p.Steps) {
					continue
				}
				q := p.clone()
				q.Steps = slices.Delete(q.Steps, i, i+n)
				again = try(q) || again
			}
		}
		for _, change := range changesOf(p) {
			q := p.clone()
			change(q)
			again = try(q) || again
		}
		for i := 0; i < len(p.Steps); i++ {
			for _, change := range simpler {
				if i >= len(p.Steps) {
					break
				}
				q := p.clone()
				change(&q.Steps[i])
				again = try(q) || again
			}
			for j := 0; i < len(p.Steps) && j < len(p.Steps[i].Calls); j++ {
				q := p.clone()
				q.Steps[i].Calls = slices.Delete(q.Steps[i].Calls, j, j+1)
				if again = try(q) || again; i >= len(p.Steps) || j >= len(p.Steps[i].Calls) {
					break
				}
				for _, change := range simpler {
					if i < len(p.Steps) && j < len(p.Steps[i].Calls) {
						q := p.clone()
						change(&q.Steps[i].Calls[j])
						again = try(q) || again
					}
				}
			}
		}
		if asked >= most {
			break
		}
	}
	return p
}

// newRunFails reports whether the model refuses a program.
func newRunFails(p *Program) bool {
	if p.Kills || len(p.Steps) == 0 {
		return len(p.Steps) == 0
	}
	x := &run{p: p}
	_, err := x.foresee()
	return err != nil
}

func (p *Program) clone() *Program {
	q := *p
	q.Steps = slices.Clone(p.Steps)
	for i := range q.Steps {
		q.Steps[i].Calls = slices.Clone(q.Steps[i].Calls)
	}
	return &q
}

// changesOf are simpler forms of a whole program.
func changesOf(p *Program) (list []func(*Program)) {
	list = append(list,
		func(p *Program) { p.Each = false },
		func(p *Program) { p.Apart = false },
		func(p *Program) { p.Transport, p.Slot = "", 0 },
		func(p *Program) { p.Ring, p.Args = 0, 0 },
		func(p *Program) { p.Bytes = 4096 },
		func(p *Program) { // without the last rank
			if p.Ranks--; p.Ranks < 1 {
				p.Ranks = 1
			}
			for i := range p.Steps {
				p.Steps[i].without(p.Ranks)
			}
		},
	)
	return list
}

// without makes a step one of fewer ranks.
func (s *Step) without(rank int) {
	fewer := func(list []int) []int {
		return slices.DeleteFunc(slices.Clone(list), func(r int) bool { return r == rank })
	}
	if len(s.Ranks) > 0 {
		s.Ranks = fewer(s.Ranks)
	}
	for i, part := range s.Members {
		s.Members = slices.Clone(s.Members)
		s.Members[i] = fewer(part)
	}
	if s.Root == rank {
		s.Root = 0
	}
	if len(s.Counts) > 1 {
		s.Counts = s.Counts[:rank]
	}
	for i, row := range s.Counts {
		s.Counts = slices.Clone(s.Counts)
		s.Counts[i] = row[:min(rank, len(row))]
	}
	for i := range s.Calls {
		s.Calls[i].without(rank)
	}
}

// simpler are simpler forms of a step.
var simpler = []func(*Step){
	func(s *Step) { s.Times = 0 },
	func(s *Step) { s.Times /= 2 },
	func(s *Step) { s.Count = min(s.Count, 1) },
	func(s *Step) { s.Count /= 2 },
	func(s *Step) { s.InAt, s.OutAt = 0, 0 },
	func(s *Step) { s.Fill = 0 },
	func(s *Step) { s.Fill = min(s.Fill, 1) },
	func(s *Step) {
		if s.Type != 0 {
			s.Type = 3 // int32
		}
	},
	func(s *Step) { s.Op = 0 },
	func(s *Step) { s.Root = 0 },
	func(s *Step) {
		if s.Do == Call && !s.Kind.Variable() {
			s.Kind, s.Root = 2, 0 // AllReduce
		}
	},
	func(s *Step) { s.In, s.Out = 0, 0 },
	func(s *Step) { s.Algo, s.Path, s.Slot, s.Ordered = "", "", 0, false },
	func(s *Step) { s.Mode, s.By = "", "" },
	func(s *Step) { s.Stream = Own },
	func(s *Step) { s.Stream = min(s.Stream, Own2) },
	func(s *Step) {
		if s.Do == Group && len(s.Calls) == 1 {
			*s = s.Calls[0]
		}
	},
	func(s *Step) {
		s.Counts = slices.Clone(s.Counts)
		for i, row := range s.Counts {
			s.Counts[i] = slices.Clone(row)
			for j := range row {
				s.Counts[i][j] = min(row[j], 1)
			}
		}
	},
}
