package cudaemu

import "fmt"

// Unreleased lists the objects that the program has not released yet.
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
	count := func(n int, what string) {
		if n > 0 {
			list = append(list, fmt.Sprintf("%d × %s", n, what))
		}
	}
	graphs := len(m.graphs)
	for _, g := range m.graphs {
		graphs -= boolInt(g.owned)
	}
	for p := range m.captures {
		graphs -= boolInt(!p.given)
	}
	count(len(m.captures), "capture not ended")
	count(graphs, "graph")
	count(len(m.execs), "executable graph")
	count(len(m.objects), "user object")
	count(len(m.virtual.handles), "allocation of cuMemCreate")
	count(len(m.virtual.reserved), "reserved address range")
	return list
}

// contents lists the objects of the context. It is empty after a failure, since nothing
// can be released then.
func (x *context) contents() (list []string) {
	if x.broken() {
		return nil
	}
	prefix := fmt.Sprintf("device %d: ", x.dev.ordinal)
	for _, r := range x.m.regions.sorted {
		if r.ctx == x && r.kind != regionGlobal && !r.kept {
			list = append(list, fmt.Sprintf("%s%d bytes of %s #%d at %#x", prefix, r.size, regionNames[r.kind], r.id, r.addr))
		}
	}
	for _, s := range x.streams {
		if s.isUser() && !s.destroyed {
			list = append(list, fmt.Sprintf("%sstream %#x", prefix, uintptr(s.handle)))
		}
	}
	events, modules := 0, 0
	for _, e := range x.m.events {
		events += boolInt(e.ctx == x)
	}
	for _, mod := range x.m.modules {
		modules += boolInt(mod.ctx == x)
	}
	if events > 0 {
		list = append(list, fmt.Sprintf("%s%d × event", prefix, events))
	}
	if modules > 0 {
		list = append(list, fmt.Sprintf("%s%d × module", prefix, modules))
	}
	return list
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
