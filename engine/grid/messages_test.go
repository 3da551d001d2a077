package grid

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// single is a send or a receive and nothing else.
type single struct {
	n    int
	step sched.Step
}

func (s single) Shape() sched.Shape {
	if s.step.Src.Buf == sched.In {
		return sched.Shape{Ranks: s.n, In: 1}
	}
	return sched.Shape{Ranks: s.n, Out: 1}
}
func (s single) Len(sched.Rank) int            { return 1 }
func (s single) At(sched.Rank, int) sched.Step { return s.step }

// A parcel is a message from one rank to another.
type parcel struct{ from, to, n int }

// posted are the jobs of parcels, by rank, and what is to come of them.
type posted struct {
	jobs   [][]*Job
	checks []arrival
}

type arrival struct {
	m    *member
	at   uintptr
	want []byte
}

func (r *rig) post(parcels []parcel, seed uint64) *posted {
	r.t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 1))
	p := &posted{jobs: make([][]*Job, len(r.ranks))}
	for i, x := range parcels {
		b := make([]byte, x.n)
		for k := range b {
			b[k] = byte(rnd.Uint32())
		}
		add := func(m *member, step sched.Step, send bool) {
			var at uintptr
			off := uintptr(rnd.IntN(20))
			r.with(m, func() (err error) {
				at, err = r.d.MemAlloc(x.n + 32)
				m.free = append(m.free, at)
				at += off
				if err == nil && send && x.n > 0 {
					err = cuda.Write(r.d, at, b)
				}
				return err
			})
			program, err := m.engine.Compile(single{len(r.ranks), step}, m.rank)
			require.NoError(r.t, err)
			j := &Job{Program: program, Stamp: transport.Stamp{7, uint64(i)}, Stream: m.stream}
			l := engine.Layout{Total: x.n, Chunk: x.n}
			if region := mem.Device(int(m.dev), at, x.n); send {
				j.In, j.InL = region, l
			} else {
				j.Out, j.OutL = region, l
				p.checks = append(p.checks, arrival{m, at, b})
			}
			p.jobs[m.rank] = append(p.jobs[m.rank], j)
		}
		add(r.ranks[x.from], sched.Step{Recv: sched.Nobody, Send: sched.Rank(x.to), Src: sched.Ref{Buf: sched.In}}, true)
		add(r.ranks[x.to], sched.Step{Recv: sched.Rank(x.from), Send: sched.Nobody, Dst: sched.Ref{Buf: sched.Out}}, false)
	}
	return p
}

// postShared is post for many parcels: those of a length are the same bytes, at the same
// places, and one program carries all of a way.
func (r *rig) postShared(parcels []parcel) *posted {
	r.t.Helper()
	p := &posted{jobs: make([][]*Job, len(r.ranks))}
	type key struct {
		parcel
		send bool
	}
	known := map[key]*Job{}
	programs := map[key]*Program{}
	for _, x := range parcels {
		for _, send := range []bool{true, false} {
			m, k := r.ranks[x.to], key{x, send}
			if send {
				m = r.ranks[x.from]
			}
			if j := known[k]; j != nil {
				p.jobs[m.rank] = append(p.jobs[m.rank], j)
				continue
			}
			b := bytes.Repeat([]byte{byte(1 + x.n), byte(x.from), byte(x.to)}, x.n/3+1)[:x.n]
			var at uintptr
			r.with(m, func() (err error) {
				at, err = r.d.MemAlloc(max(1, x.n))
				m.free = append(m.free, at)
				if err == nil && send {
					err = cuda.Write(r.d, at, b)
				}
				return err
			})
			j := &Job{Stamp: transport.Stamp{7, uint64(x.n)}, Stream: m.stream}
			step := sched.Step{Recv: sched.Nobody, Send: sched.Rank(x.to), Src: sched.Ref{Buf: sched.In}}
			l, region := engine.Layout{Total: x.n, Chunk: x.n}, mem.Device(int(m.dev), at, x.n)
			if j.In, j.InL = region, l; !send {
				step = sched.Step{Recv: sched.Rank(x.from), Send: sched.Nobody, Dst: sched.Ref{Buf: sched.Out}}
				j.In, j.InL, j.Out, j.OutL = mem.Region{}, engine.Layout{}, region, l
				p.checks = append(p.checks, arrival{m, at, b})
			}
			k.n = 0
			if programs[k] == nil {
				var err error
				programs[k], err = m.engine.Compile(single{len(r.ranks), step}, m.rank)
				require.NoError(r.t, err)
			}
			j.Program = programs[k]
			k.n = x.n
			known[k] = j
			p.jobs[m.rank] = append(p.jobs[m.rank], j)
		}
	}
	return p
}

// arrived requires that all messages have come, and wipes them.
func (r *rig) arrived(p *posted) {
	r.t.Helper()
	require.NoError(r.t, r.missing(p))
}

// missing is the error of a message that has not come as it was sent, nil if all have. All are wiped.
func (r *rig) missing(p *posted) (err error) {
	r.t.Helper()
	r.sync()
	for _, c := range p.checks {
		require.NoError(r.t, c.m.engine.Control().Fault())
		if len(c.want) == 0 {
			continue
		}
		got := make([]byte, len(c.want))
		r.with(c.m, func() error {
			if err := r.d.MemcpyDtoH(got, c.at); err != nil {
				return err
			}
			if err := r.d.MemsetD8Async(c.at, 0xee, len(got), c.m.stream); err != nil {
				return err
			}
			return r.d.StreamSynchronize(c.m.stream)
		})
		if at := difference(c.want, got); at >= 0 {
			err = fmt.Errorf("rank %d: byte %d of %d is %x, want %x", c.m.rank, at, len(got), got[at], c.want[at])
		}
	}
	return err
}

// TestMessages sends messages in groups: every rank queues all of its sends and
// receives at once, in different orders, or one by one where that cannot hang.
func TestMessages(t *testing.T) {
	tier.Long(t)
	const n = 3
	ringOf := func(size int) (all []parcel) {
		for r := range n {
			all = append(all, parcel{r, (r + 1) % n, size})
		}
		return all
	}
	var everybody []parcel
	for from := range n {
		for to := range n {
			everybody = append(everybody, parcel{from, to, 700*from + 333*to + 1}, parcel{from, to, 5}, parcel{from, to, 0})
		}
	}
	var many []parcel
	for i := range tier.Count(100, 200) {
		many = append(many, parcel{i % n, (i / n) % n, 3 * i})
	}
	tests := []struct {
		name    string
		parcels []parcel
		blocks  int
		alone   int // a rank that queues its messages one by one, or -1
	}{
		{"neighbours", ringOf(10), 0, -1},
		{"neighbours, more than queues hold", ringOf(10000), 0, -1},
		{"one block", ringOf(10000), 1, -1},
		{"everybody, two blocks", everybody, 2, -1},
		{"everybody", everybody, 0, -1},
		{"more than arguments hold", many, 0, -1},
		{"nothing", ringOf(0), 0, -1},
		{"one is alone", []parcel{{0, 1, 3000}, {0, 2, 5000}, {2, 1, 20}, {2, 1, 2000}}, 0, 0},
	}
	for seed, test := range append(tests, tests...) { // over both kinds of links
		if !tier.Pairs() && seed%2 != seed/len(tests) {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			o := options(n)
			o.Blocks = test.blocks
			r := newRig(t, emulated(t, n, cudaemu.Config{Seed: uint64(seed), Link: link(uint64(seed / len(tests)))}), small(n),
				o)
			p := r.post(test.parcels, uint64(seed))
			r.sendTwice(p, test.alone)
		})
	}
}

// sendTwice carries out what was posted, two times: each rank's messages together, those of
// rank alone, if there is one, one by one.
func (r *rig) sendTwice(p *posted, alone int) {
	r.t.Helper()
	for range 2 {
		for i, m := range r.ranks {
			r.with(m, func() error {
				if i != alone {
					return m.engine.RunMessages(p.jobs[i])
				}
				for _, j := range p.jobs[i] {
					require.NoError(r.t, carry(m.engine, j))
				}
				return nil
			})
		}
		r.arrived(p)
	}
}

func TestMessagesWrong(t *testing.T) {
	const n = 2
	r := newRig(t, emulated(t, n, cudaemu.Config{}), small(n), options(n))
	e := r.ranks[0].engine
	require.NoError(t, e.RunMessages(nil))
	o := r.prepare(allReduce(n), 1)
	require.ErrorContains(t, e.RunMessages([]*Job{&o.jobs[0]}), "single sends and receives")
}
