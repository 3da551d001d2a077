package weakmem

// The operations below are done by the driver, a copy engine or the host, at one
// moment. They happen after the given Clock, and the Clock returned is after them.
// Errors are *Fault with device -1 and the name of the operation as the kernel. Ranges
// may cover several adjacent allocations.

// Copy copies n bytes from src to dst. Bytes that are unwritten in src become unwritten
// in dst.
func (m *Memory) Copy(dst, src uint64, n int, after Clock) (Clock, error) {
	o := m.operation("copy", after)
	for at := uint64(0); at < uint64(max(n, 0)); {
		s, p, err := o.access(src+at, uint64(n)-at, 0)
		if err != nil {
			return after, err
		}
		d, q, err := o.access(dst+at, uint64(len(p)), write)
		if err != nil {
			return after, err
		}
		p = p[:len(q)]
		err = o.read(s, src+at, uint64(len(p)))
		if err == nil && d.Device < 0 {
			err = o.toHost(s, src+at-s.Addr, uint64(len(p)))
		}
		if err != nil {
			return after, err
		}
		if err := o.write(d, dst+at, q, p); err != nil {
			return after, err
		}
		if !m.config.Plain {
			d.copyWritten(dst+at-d.Addr, s, src+at-s.Addr, uint64(len(p)))
		}
		at += uint64(len(p))
	}
	return o.done(), nil
}

// Set fills n bytes with repetitions of the pattern.
func (m *Memory) Set(dst uint64, pattern []byte, n int, after Clock) (Clock, error) {
	o := m.operation("set", after)
	n = max(n, 0)
	block := make([]byte, len(pattern)*(1+min(n, 1<<16)/len(pattern)))
	for i := 0; i < len(block); i += len(pattern) {
		copy(block[i:], pattern)
	}
	for at := 0; at < n; {
		i := at % len(pattern)
		wrote, err := o.store(dst+uint64(at), block[i:min(len(block), i+n-at)])
		if err != nil {
			return after, err
		}
		at += wrote
	}
	return o.done(), nil
}

// Read copies to the host's own memory, which is not mapped here.
func (m *Memory) Read(dst []byte, src uint64, after Clock) (Clock, error) {
	o := m.operation("read", after)
	for len(dst) > 0 {
		s, p, err := o.access(src, uint64(len(dst)), 0)
		if err != nil {
			return after, err
		}
		err = o.read(s, src, uint64(len(p)))
		if err == nil {
			err = o.toHost(s, src-s.Addr, uint64(len(p)))
		}
		if err != nil {
			return after, err
		}
		copy(dst, p)
		dst, src = dst[len(p):], src+uint64(len(p))
	}
	return o.done(), nil
}

// Write copies from the host's own memory.
func (m *Memory) Write(dst uint64, src []byte, after Clock) (Clock, error) {
	o := m.operation("write", after)
	for len(src) > 0 {
		n, err := o.store(dst, src)
		if err != nil {
			return after, err
		}
		src, dst = src[n:], dst+uint64(n)
	}
	return o.done(), nil
}

// StoreRelease is a store of 4 or 8 bytes that releases at system scope, as
// cuStreamWriteValue makes it.
func (m *Memory) StoreRelease(dst uint64, v uint64, size int, after Clock) (Clock, error) {
	o := m.operation("store", after)
	o.kind = strong
	s, p, err := o.element(dst, size, write)
	if err != nil {
		return after, err
	}
	var b [8]byte
	put(b[:], size, v)
	if err := o.write(s, dst, p, b[:size]); err != nil {
		return after, err
	}
	now := o.done()
	if !m.config.Plain {
		r := &release{by: &o.origin, known: clocks{System: now.v}}
		s.memory.sites.set(s.memory, dst-s.Addr, uint64(size),
			newSite(dst-s.Addr, b[:size], r, signal{by: &o.origin}, m.past.now))
		s.toHost(m, r)
	}
	return now, nil
}

// LoadAcquire is a load of 4 or 8 bytes that acquires at system scope, as
// cuStreamWaitValue makes it at last, see Peek. The Clock is after the store it read.
func (m *Memory) LoadAcquire(src uint64, size int, after Clock) (uint64, Clock, error) {
	o := m.operation("load", after)
	o.kind = strong
	s, p, err := o.element(src, size, 0)
	if err != nil {
		return 0, after, err
	}
	if err := o.read(s, src, uint64(size)); err != nil {
		return 0, after, err
	}
	v := strongGet(p, size)
	now := o.done()
	if p := s.memory.sites.find(src-s.Addr, size, v); p != nil {
		var got clocks
		p.to(&o.origin, &got)
		now = Join(now, Clock{got[System]})
	} else if s.foreign() {
		now = Join(now, m.Host())
	}
	return v, now, nil
}

// Peek is the value that LoadAcquire would load. It is no access: a wait that finds
// another value leaves no trace.
func (m *Memory) Peek(src uint64, size int) (uint64, error) {
	o := operation{memory: m, origin: origin{what: "load"}, kind: strong}
	_, p, err := o.element(src, size, 0)
	if err != nil {
		return 0, err
	}
	return strongGet(p, size), nil
}

// Host is the Clock of the host: the Clocks given to HostSaw, and those that kernels
// released at system scope in host memory and other foreign allocations. Work that the host
// starts is after it.
func (m *Memory) Host() Clock { return Clock{m.host} }

// HostSaw says that the host waited for c.
func (m *Memory) HostSaw(c Clock) {
	m.Released()
	m.host = join(m.host, c.v)
}

// An operation is an access by the driver.
type operation struct {
	memory *Memory
	origin origin
	after  *vector
	kind   kind // strong or 0
}

func (m *Memory) operation(what string, after Clock) *operation {
	return &operation{memory: m, origin: origin{agent: m.agent(), what: what}, after: after.v}
}

// done is the clock after the operation.
func (o *operation) done() Clock {
	return Clock{join(endedVector([]uint32{o.origin.agent}), o.after)}
}

// access is the memory at addr, as much of n bytes as one allocation has.
func (o *operation) access(addr, n uint64, k kind) (*Allocation, []byte, error) {
	s := o.memory.allocations.find(addr)
	if s == nil || s.gone() {
		r := record{by: &o.origin, n: n, kind: k}
		f := r.fault(OutOfBounds, nil, 0, 0)
		f.Addr, f.Detail = addr, o.memory.allocations.near(addr)
		return nil, nil, f
	}
	off := addr - s.Addr
	return s, s.Data[off:min(off+n, uint64(len(s.Data)))], nil
}

// element is the memory of an aligned integer.
func (o *operation) element(addr uint64, size int, k kind) (*Allocation, []byte, error) {
	s, p, err := o.access(addr, uint64(size), k)
	if err != nil {
		return nil, nil, err
	}
	if addr%uint64(size) != 0 || len(p) < size {
		r := record{by: &o.origin, n: uint64(size), kind: k}
		f := r.fault(Misaligned, s, addr-s.Addr, 0)
		f.Detail = "the address must be a multiple of the size"
		return nil, nil, f
	}
	return s, p, nil
}

// store writes as much of src to dst as one allocation takes.
func (o *operation) store(dst uint64, src []byte) (int, error) {
	s, p, err := o.access(dst, uint64(len(src)), write)
	if err != nil {
		return 0, err
	}
	return len(p), o.write(s, dst, p, src[:len(p)])
}

// read notes a read of n bytes of the allocation.
func (o *operation) read(s *Allocation, addr, n uint64) error { return o.note(s, addr, n, 0) }

// write writes to p, which is at addr in the allocation.
func (o *operation) write(s *Allocation, addr uint64, p, src []byte) error {
	if err := o.note(s, addr, uint64(len(p)), write); err != nil {
		return err
	}
	if s.foreign() {
		o.memory.Released() // a kernel of another process may wait for what is written
	}
	if o.kind&strong != 0 { // with the release that it overwrites
		o.memory.remember(s, addr-s.Addr, uint64(len(p)), &o.origin, seenBy{device: -1})
	}
	if !o.memory.config.Plain {
		s.setWritten(addr-s.Addr, uint64(len(p)))
		s.memory.sites.set(s.memory, addr-s.Addr, uint64(len(p)), nil)
	}
	// Zeros are there already, and a look at them would have the system make pages.
	if len(p) >= leastHole && s.Hole != nil && zero(src) && s.Hole(addr-s.Addr, uint64(len(p))) {
		return nil
	}
	o.memory.write(p, src)
	return nil
}

const leastHole = 16 << 10 // bytes for which asking the system is quicker than comparing them

// zero reports whether all bytes are 0.
func zero(p []byte) bool { return len(p) == 0 || p[0] == 0 && string(p[1:]) == string(p[:len(p)-1]) }

// note checks an access and remembers it.
func (o *operation) note(s *Allocation, addr, n uint64, k kind) error {
	m := o.memory
	if m.config.Plain || n == 0 {
		return nil
	}
	r := record{by: &o.origin, addr: addr - s.Addr, n: n, mask: 1, kind: k | o.kind, scope: System, alias: s.alias}
	if o.kind&strong != 0 {
		r.element = uint8(n)
	}
	m.compact()
	a := access{memory: m, clock: o.after, record: &r, number: m.history.add(&r)}
	if f := a.touch(s); f != nil {
		return f
	}
	return nil
}
