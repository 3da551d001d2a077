package main

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// A plan is the rooms of the house and what each needs of others. Rooms are the folders at the
// top, but those of core are its packages, and those of the module's own package its files.
// Tests, packages for tests and generated files are not in it.
type plan struct {
	rooms []string
	needs map[string]map[string]bool // by room
}

// roomOf is the room of a package, "" for the module's own package, each of whose files is a
// room.
func roomOf(folder string) string {
	top, rest, _ := strings.Cut(folder, "/")
	switch {
	case folder == ".":
		return ""
	case top == "core" && rest != "":
		sub, _, _ := strings.Cut(rest, "/")
		return "core/" + sub
	}
	return top
}

// newPlan draws the plan. within lists, for each file of the module's own package, the other files
// of that package that it uses. A room that imports that package needs the files that declare the
// names it uses.
func newPlan(m *module, within map[string][]string) *plan {
	p := &plan{needs: map[string]map[string]bool{}}
	declares := map[string]string{} // exported names of the module's own package
	inPlan := func(s *source) bool { return !s.isTest() && !s.apart && !s.generated }
	for _, s := range m.files {
		if s.folder() == "." && inPlan(s) {
			for _, name := range exportedIn(s.tree) {
				declares[name] = s.name
			}
		}
	}
	for _, s := range m.files {
		if !inPlan(s) {
			continue
		}
		here := roomOf(s.folder())
		if here == "" {
			here = s.name
		}
		if p.needs[here] == nil {
			p.needs[here] = map[string]bool{}
		}
		for _, to := range within[s.name] {
			p.needs[here][to] = true
		}
		for _, spec := range s.imports() {
			folder, ok := m.inside(spec)
			if !ok {
				continue
			}
			if folder != "." {
				p.needs[here][roomOf(folder)] = true
				continue
			}
			ast.Inspect(s.tree, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := sel.X.(*ast.Ident); ok && x.Name == m.name() && declares[sel.Sel.Name] != "" {
						p.needs[here][declares[sel.Sel.Name]] = true
					}
				}
				return true
			})
		}
		delete(p.needs[here], here)
	}
	p.rooms = slices.Sorted(maps.Keys(p.needs))
	return p
}

// arrows is the number of pairs of rooms of which the first needs the second.
func (p *plan) arrows() (n int) {
	for _, to := range p.needs {
		n += len(to)
	}
	return n
}

// up are the arrows that go back up, and floors is the number of floors. Of all orders of the
// rooms from the ground to the roof one is taken in which the fewest arrows go from a lower
// room to a higher one; those go back up. In a house without circles there are none.
func (p *plan) up() (back []string, floors int) {
	height := map[string]int{}
	for _, circle := range p.circles() {
		order := bestOrder(circle, p.needs)
		for i, room := range order {
			level := 0
			for to := range p.needs[room] {
				if slices.Index(order, to) > i {
					back = append(back, room+" → "+to)
				} else {
					level = max(level, height[to])
				}
			}
			height[room] = level + 1
			floors = max(floors, level+1)
		}
	}
	slices.Sort(back)
	return back, floors
}

// circles are the strongly connected parts of the plan, each after those that it needs (Tarjan,
// "Depth-first search and linear graph algorithms", 1972).
func (p *plan) circles() (parts [][]string) {
	number, low := map[string]int{}, map[string]int{}
	var stack []string
	var visit func(room string)
	visit = func(room string) {
		number[room] = len(number) + 1
		low[room] = number[room]
		stack = append(stack, room)
		for _, to := range slices.Sorted(maps.Keys(p.needs[room])) {
			if number[to] == 0 {
				visit(to)
				low[room] = min(low[room], low[to])
			} else if slices.Contains(stack, to) {
				low[room] = min(low[room], number[to])
			}
		}
		if low[room] == number[room] {
			i := slices.Index(stack, room)
			parts = append(parts, slices.Sorted(slices.Values(stack[i:])))
			stack = stack[:i]
		}
	}
	for _, room := range p.rooms {
		if number[room] == 0 {
			visit(room)
		}
	}
	return parts
}

// mostExact is the largest circle whose best order is found by trying all sets: 2^n·n steps.
const mostExact = 18

// bestOrder puts the rooms of a circle into an order, the ground first, in which the fewest
// arrows go up. It is exact for up to mostExact rooms. Of more rooms it always takes next the one
// that adds the fewest arrows, so there may be a better order.
func bestOrder(rooms []string, needs map[string]map[string]bool) (order []string) {
	n := len(rooms)
	masks := make([]uint32, n) // what each needs of the others
	for i, from := range rooms {
		for j, to := range rooms {
			if needs[from][to] {
				masks[i] |= 1 << j
			}
		}
	}
	if n > mostExact {
		return greedyOrder(rooms, needs)
	}
	// least[s] is the fewest arrows that go up from the rooms of s when these are the lowest.
	least, last := make([]uint16, 1<<n), make([]uint8, 1<<n)
	for s := uint32(1); s < 1<<n; s++ {
		least[s] = 1<<16 - 1
		for i := range n {
			if s&(1<<i) == 0 {
				continue
			}
			ups := uint16(0)
			for rest := masks[i] &^ s; rest != 0; rest &= rest - 1 {
				ups++
			}
			if c := least[s&^(1<<i)] + ups; c < least[s] {
				least[s], last[s] = c, uint8(i)
			}
		}
	}
	for s := uint32(1<<n - 1); s != 0; s &^= 1 << last[s] {
		order = append(order, rooms[last[s]])
	}
	slices.Reverse(order)
	return order
}

func greedyOrder(rooms []string, needs map[string]map[string]bool) (order []string) {
	left := slices.Clone(rooms)
	for len(left) > 0 {
		best, fewest := 0, len(rooms)+1
		for i, room := range left {
			n := 0
			for _, other := range left {
				if needs[room][other] {
					n++
				}
			}
			if n < fewest {
				best, fewest = i, n
			}
		}
		order = append(order, left[best])
		left = slices.Delete(left, best, best+1)
	}
	return order
}
