package programs

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels"
)

// A model carries out a program on the host, in the order of its steps.
type model struct {
	*world
	memory map[place]cells // what steps have come to so far; the rest is as at first
	calls  int             // operations, those of launched graphs included
	change bool            // the last operations have changed memory
}

// A place is a buffer of a rank of a communicator.
type place struct{ comm, rank, buffer int }

// cells are the bytes of a buffer; known tells those (1) that are not undefined (0).
type cells struct{ data, known []byte }

func newModel(p *Program) *model {
	return &model{world: newWorld(p), memory: map[place]cells{}}
}

// step carries out a step, or says why it makes no sense.
func (m *model) step(s *Step) error {
	var calls []Step
	switch g := m.graphs[s.Graph]; {
	case s.Do == Launch && g != nil:
		calls = g.calls
	case s.Do == Call || s.Do == Message:
		calls = []Step{*s}
	case s.Do == Group:
		calls = s.Calls
	}
	if err := m.world.step(s); err != nil {
		return err
	}
	switch s.Do {
	case Call, Message, Group, Launch:
		if m.taken[s.on()] == nil {
			m.carryOutAll(calls, max(1, s.Times))
		}
	case Abort: // Close waits for all that is queued
		for r := range m.comms[s.Comm].members {
			for b := range Buffers {
				clear(m.at(s.Comm, r, b).known)
			}
		}
	}
	return nil
}

// at is the model's memory of a buffer.
func (m *model) at(comm, rank, buffer int) cells {
	x, ok := m.memory[place{comm, rank, buffer}]
	if !ok {
		x = cells{contents(m.p, comm, rank, buffer), bytes.Repeat([]byte{1}, m.p.Bytes)}
		m.memory[place{comm, rank, buffer}] = x
	}
	return x
}

// contents is what a buffer holds at first. The race detector need not look at bytes that no other goroutine has yet:
// that would take most of the time of these tests.
//
//go:norace
func contents(p *Program, number, rank, buffer int) []byte {
	rng := rand.NewPCG(p.Seed, uint64(number*1000+rank*10+buffer))
	b := make([]byte, 0, p.Bytes+8)
	for len(b) < p.Bytes {
		b = binary.LittleEndian.AppendUint64(b, rng.Uint64())
	}
	return b[:p.Bytes]
}

// ones are the number 1 of each type of floats, little-endian.
var ones = map[kernels.DataType][]byte{
	kernels.Float16: {0, 0x3c}, kernels.Float32: {0, 0, 0x80, 0x3f}, kernels.Float64: {0, 0, 0, 0, 0, 0, 0xf0, 0x3f},
	kernels.BFloat16: {0x80, 0x3f}, kernels.Float8E4M3: {0x38}, kernels.Float8E5M2: {0x3c},
}

func float(t kernels.DataType) bool { return ones[t] != nil }

// pattern is what a device has to fill memory with: floats are 0 and 1, so that sums of few
// of them are exact in every type.
//
//go:norace
func pattern(p *Program, device int, t kernels.DataType) []byte {
	b := contents(p, -1, device, int(t))
	if one, n := ones[t], t.Size(); one != nil {
		for i := 0; i+n <= len(b); i += n {
			if on := b[i]&1 != 0; on {
				copy(b[i:], one)
			} else {
				clear(b[i : i+n])
			}
		}
	}
	return b
}

// carryOutAll does calls several times, or until once more would change nothing.
func (m *model) carryOutAll(calls []Step, times int) {
	m.calls += times * len(calls)
	m.change = true
	for ; times > 0 && m.change; times-- {
		m.change = false
		for i := range calls {
			m.carryOut(&calls[i])
		}
	}
}

// carryOut does a call on the memory of all ranks.
func (m *model) carryOut(s *Step) {
	c := m.comms[s.Comm]
	if c.state != alive || s.Do == Call && s.Kind == call.Barrier {
		return // what is undefined stays so
	}
	size := s.Type.Size()
	if s.Do == Message {
		in, out := m.at(s.Comm, s.Sender, s.In), m.at(s.Comm, s.Recver, s.Out)
		m.put(out, s.OutAt*size, in.get(s.InAt*size, s.Count*size))
		return
	}
	n := len(c.members)
	wide := c.algo == "window" || c.algo == "copies"
	ins := make([]cells, n)
	for r := range ins {
		in, _ := s.extents(r, n, wide)
		if s.Fill > 0 {
			x := pattern(m.p, c.members[r], s.Type)[(s.Fill+in.at)*size:][:in.n*size]
			ins[r] = cells{x, bytes.Repeat([]byte{1}, len(x))}
		} else {
			ins[r] = m.at(s.Comm, r, s.In).get(in.at*size, in.n*size)
		}
	}
	var sum cells
	if s.Kind.Reduces() {
		sum = s.reduce(ins)
	}
	for r := range ins {
		in, out := s.extents(r, n, wide)
		if s.Kind.Reduces() && s.inPlace() { // what is not the result is undefined
			m.at(s.Comm, r, s.In).forget(in.at*size, in.n*size)
			m.change = true
		}
		m.put(m.at(s.Comm, r, s.Out), out.at*size, s.result(ins, sum, r, out.n*size))
	}
}

// result is what rank r gets.
func (s *Step) result(ins []cells, sum cells, r, n int) cells {
	share := s.Count * s.Type.Size()
	switch s.Kind {
	case call.AllReduce:
		return sum
	case call.Reduce:
		if r != s.Root {
			return cells{make([]byte, n), make([]byte, n)}
		}
		return sum
	case call.Broadcast:
		return ins[s.Root]
	case call.ReduceScatter:
		return sum.get(r*share, share)
	case call.Scatter:
		return ins[s.Root].get(r*share, share)
	}
	var all cells
	if n == 0 {
		return all
	}
	for p, in := range ins {
		switch s.Kind {
		case call.AlltoAll:
			in = in.get(r*share, share)
		case call.AlltoAllv:
			at := 0
			for _, k := range s.Counts[p][:r] {
				at += k * s.Type.Size()
			}
			in = in.get(at, s.Counts[p][r]*s.Type.Size())
		}
		all.data, all.known = append(all.data, in.data...), append(all.known, in.known...)
	}
	return all
}

// reduce combines what the ranks give. An element is known if all theirs are.
//
//go:norace
func (s *Step) reduce(ins []cells) cells {
	red, err := kernels.NewReducer(s.Type, s.op(), len(ins))
	if err != nil {
		panic(err) // checkCall has tried it
	}
	sum := cells{make([]byte, len(ins[0].data)), bytes.Clone(ins[0].known)}
	red.Load(sum.data, ins[0].data)
	for _, in := range ins[1:] {
		if s.Type == kernels.Int32 && s.Op == kernels.KindSum {
			add(sum.data, in.data)
		} else {
			red.CombineIn(sum.data, sum.data, in.data)
		}
		for i, k := range in.known {
			sum.known[i] &= k
		}
	}
	red.Finish(sum.data)
	size := s.Type.Size()
	for i := 0; i < len(sum.known); i += size {
		if e := sum.known[i : i+size]; bytes.IndexByte(e, 0) >= 0 {
			clear(e)
		}
	}
	return sum
}

// add adds numbers without the library's arithmetic.
//
//go:norace
func add(to, x []byte) {
	for i := 0; i < len(to); i += 4 {
		n := binary.LittleEndian.Uint32(to[i:]) + binary.LittleEndian.Uint32(x[i:])
		binary.LittleEndian.PutUint32(to[i:], n)
	}
}

// get copies n bytes.
func (c cells) get(at, n int) cells {
	return cells{bytes.Clone(c.data[at : at+n]), bytes.Clone(c.known[at : at+n])}
}

func (m *model) put(to cells, at int, from cells) {
	data, known := to.data[at:][:len(from.data)], to.known[at:][:len(from.data)]
	if !bytes.Equal(data, from.data) || !bytes.Equal(known, from.known) {
		m.change = true
		copy(data, from.data)
		copy(known, from.known)
	}
}

func (c cells) forget(at, n int) { clear(c.known[at : at+n]) }

// differs is the first byte that is known and other than in got, -1 if there is none.
func (c cells) differs(got []byte) int {
	return c.unlike(bytes.Clone(got)) // of which the race detector looks at got as a whole
}

//go:norace
func (c cells) unlike(copied []byte) int {
	for i, k := range c.known {
		if k != 0 && c.data[i] != copied[i] {
			return i
		}
	}
	return -1
}
