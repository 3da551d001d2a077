package grid

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/tier"
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

// A sending is a message from one rank to another, of n bytes.
type sending struct{ from, to, n int }

// A group is messages that each rank sends and receives side by side.
type group struct {
	work
	messages [][]*Job // by rank
}

// prepareGroup makes a group. Messages have their own memory, programs and stamps; shared: those of a length have the
// same memory and stamp, and one program carries all between two ranks.
func (r *rig) prepareGroup(all []sending, shared bool, seed uint64) *group {
	r.t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 1))
	g := &group{work: work{name: "messages"}, messages: make([][]*Job, len(r.ranks))}
	g.queue = func(m *member) error { return m.engine.RunMessages(g.messages[m.rank]) }
	type key struct {
		sending
		sends bool
	}
	jobs, programs := map[key]*Job{}, map[key]*Program{}
	for i, x := range all {
		stamp, data := transport.Stamp{7, uint64(i)}, make([]byte, x.n)
		for k := range data {
			data[k] = byte(rnd.Uint32())
		}
		if shared {
			stamp[1] = uint64(x.n)
			data = bytes.Repeat([]byte{byte(1 + x.n), byte(x.from), byte(x.to)}, x.n/3+1)[:x.n]
		}
		for _, sends := range []bool{true, false} {
			m, k := r.ranks[x.to], key{x, sends}
			step := sched.Step{Recv: sched.Rank(x.from), Send: sched.Nobody, Dst: sched.Ref{Buf: sched.Out}}
			if sends {
				m = r.ranks[x.from]
				step = sched.Step{Recv: sched.Nobody, Send: sched.Rank(x.to), Src: sched.Ref{Buf: sched.In}}
			}
			if j := jobs[k]; shared && j != nil {
				g.messages[m.rank] = append(g.messages[m.rank], j)
				continue
			}
			way := key{sending{x.from, x.to, 0}, sends}
			if programs[way] == nil || !shared {
				var err error
				programs[way], err = m.engine.Compile(single{len(r.ranks), step}, m.rank)
				require.NoError(r.t, err)
			}
			fresh := bytes.Repeat([]byte{0xee}, x.n)
			if sends {
				fresh = data
			}
			region := r.upload(m, fresh, rnd.IntN(20))
			j := &Job{Program: programs[way], Stamp: stamp, Stream: m.stream}
			if l := (engine.Layout{Total: x.n, Chunk: x.n}); sends {
				j.In, j.InL = region, l
			} else {
				j.Out, j.OutL = region, l
			}
			g.images = append(g.images, image{m, region.Ptr(), fresh, data})
			jobs[k] = j
			g.messages[m.rank] = append(g.messages[m.rank], j)
		}
	}
	return g
}

// TestMessages sends messages in groups: every rank queues all of its sends and receives at once, in different orders,
// or one by one where that cannot hang; by threads, or by bulk copies on all ranks or on some.
func TestMessages(t *testing.T) {
	tier.Long(t)
	const n = 3
	ringOf := func(size int) (all []sending) {
		for r := range n {
			all = append(all, sending{r, (r + 1) % n, size})
		}
		return all
	}
	var everybody, many, longer []sending
	for from := range n {
		for to := range n {
			for _, size := range []int{700*from + 333*to + 1, 5, 0, 4096} {
				everybody = append(everybody, sending{from, to, size})
			}
		}
	}
	for i := range tier.Count(100, 200) {
		many = append(many, sending{i % n, (i / n) % n, 3 * i})
	}
	for i := range tier.Count(12, 36) {
		longer = append(longer, sending{i % n, (i / n) % n, 16 * i * i})
	}
	one := []sending{{0, 1, 3000}, {0, 2, 5000}, {2, 1, 20}, {2, 1, 2000}}
	tests := []struct {
		name   string
		all    []sending
		blocks int
		alone  int          // a rank that queues its messages one by one, or -1
		bulk   []sched.Rank // that move by bulk copies
	}{
		{"neighbours", ringOf(10), 0, -1, nil},
		{"neighbours, more than queues hold", ringOf(10000), 0, -1, nil},
		{"one block", ringOf(10000), 1, -1, nil},
		{"everybody, two blocks", everybody, 2, -1, nil},
		{"everybody", everybody, 0, -1, nil},
		{"more than arguments hold", many, 0, -1, nil},
		{"nothing", ringOf(0), 0, -1, nil},
		{"one is alone", one, 0, 0, nil},
		{"everybody, by bulk copies", everybody, 0, -1, []sched.Rank{0, 1, 2}},
		{"everybody, two blocks, by bulk copies", everybody, 2, -1, []sched.Rank{0, 2}},
		{"one block, by bulk copies", longer, 1, -1, []sched.Rank{0, 1, 2}},
		{"one is alone, by bulk copies", one, 0, 0, []sched.Rank{0, 2}},
	}
	for seed, test := range append(tests, tests...) { // over both kinds of links
		if !tier.Pairs() && seed%2 != seed/len(tests) {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			o := options(n)
			if test.bulk != nil {
				o = bulkOptions(n)
			}
			o.Blocks = test.blocks
			r := newRig(t, emulated(t, n, cudaemu.Config{Seed: uint64(seed), Link: link(uint64(seed / len(tests)))}), small(n),
				o)
			if test.bulk != nil {
				r.bulky(func(rank int) bool { return slices.Contains(test.bulk, sched.Rank(rank)) })
			}
			g := r.prepareGroup(test.all, false, uint64(seed))
			if test.alone >= 0 {
				together := g.queue
				g.queue = func(m *member) (err error) {
					if int(m.rank) != test.alone {
						return together(m)
					}
					for _, j := range g.messages[m.rank] {
						err = errors.Join(err, carry(m.engine, j))
					}
					return err
				}
			}
			r.inTurn(g)
			r.inTurn(g)
		})
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
