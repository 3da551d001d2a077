package cudaemu

import (
	"fmt"
	"maps"
	"slices"
)

// Unreleased lists the objects that the program has not released yet, without what a library holds: see Config.Caller.
func (m *Machine) Unreleased() []string {
	m.lock()
	defer m.mu.Unlock()
	return m.unreleased()
}

func (m *Machine) unreleased() (list []string) {
	for _, d := range m.devices {
		if x := d.primary; x != nil {
			if n := x.refs - x.kept(); n > 0 && !x.broken() {
				list = append(list, fmt.Sprintf("device %d: primary context: retained %d times more than released", d.ordinal, n))
			}
			list = append(list, x.contents()...)
		}
		for _, x := range d.created {
			list = append(list, fmt.Sprintf("device %d: context of cuCtxCreate %#x", d.ordinal, x.handle))
			list = append(list, x.contents()...)
		}
	}
	t, capturing := tally{}, map[*graph]bool{}
	for p := range m.captures {
		t.add("capture not ended", p.graph.by)
		capturing[p.graph] = !p.given
	}
	for _, g := range m.graphs {
		if !g.owned && !capturing[g] {
			t.add("graph", g.by)
		}
	}
	for _, x := range m.execs {
		t.add("executable graph", x.by)
	}
	for _, o := range m.objects {
		t.add("user object", o.by)
	}
	for _, p := range m.virtual.handles {
		if p.refs+p.maps > p.lent { // the program holds it too
			t.add("allocation of cuMemCreate", p.by)
		}
	}
	for _, r := range m.virtual.reserved {
		t.add("reserved address range", r.by)
	}
	return append(list, t.lines("")...)
}

// A tally counts the objects of a kind that one line of the program has made, without what libraries have made.
type tally map[string]int

func (t tally) add(what string, by Caller) {
	if call := by.forWhat(); call != "" {
		what += " (" + call + ")"
	}
	t[what] += boolInt(!by.Library)
}

// lines is a sentence for each kind and line.
func (t tally) lines(prefix string) (list []string) {
	for _, what := range slices.Sorted(maps.Keys(t)) {
		if t[what] > 0 {
			list = append(list, fmt.Sprintf("%s%d × %s", prefix, t[what], what))
		}
	}
	return list
}

// contents lists the objects of the context. It is empty after a failure, since nothing
// can be released then.
func (x *context) contents() (list []string) {
	if x.broken() {
		return nil
	}
	prefix, t := fmt.Sprintf("device %d: ", x.dev.ordinal), tally{}
	// An object whose line is known needs neither number nor address.
	single := func(what, which string, by Caller) {
		if by.Library || by.forWhat() != "" {
			t.add(what, by)
		} else {
			list = append(list, prefix+what+which)
		}
	}
	for _, r := range x.m.regions.sorted {
		if r.ctx == x && r.kind != regionGlobal && r.kind != regionHeap && !r.kept && !r.freed {
			single(fmt.Sprintf("%d bytes of %s", r.size, regionNames[r.kind]), fmt.Sprintf(" #%d at %#x", r.id, r.addr), r.by)
		}
	}
	for _, s := range x.streams {
		if s.isUser() && !s.destroyed {
			single("stream", fmt.Sprintf(" %#x", uintptr(s.handle)), s.by)
		}
	}
	for _, e := range x.m.events {
		if e.ctx == x {
			t.add("event", e.by)
		}
	}
	for _, mod := range x.m.modules {
		if mod.ctx == x {
			t.add("module", mod.by)
		}
	}
	return append(list, t.lines(prefix)...)
}

// Keep says that others may touch an allocation from now on, see cuda.Keep.
func (m *Machine) Keep(p uintptr) {
	m.lock()
	defer m.mu.Unlock()
	r := m.regions.find(uint64(p))
	if r == nil {
		return
	}
	r.kept = true
	if x := m.virtual.handles[r.handle]; x != nil {
		x.kept = true
	}
}

// kept is how many references to the context stay on purpose.
func (x *context) kept() (n int) {
	for _, r := range x.m.regions.sorted {
		n += boolInt(r.ctx == x && r.kept)
	}
	return n
}
