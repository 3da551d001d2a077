package engine

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/ring/hier"
	"github.com/ringo-go/ringo/ring/tree"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/trace"
	"github.com/ringo-go/ringo/transport"
)

// Chunks of every layout are in order, whole elements, and cover the buffer.
func TestEvenCovers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		elem := rapid.SampledFrom([]int{1, 2, 4, 8, 3, 24, 100, 4096}).Draw(t, "elem")
		total := elem * rapid.IntRange(0, 5000).Draw(t, "count")
		chunks := rapid.IntRange(1, 70).Draw(t, "chunks")
		l := Even(total, chunks, elem)
		end := 0
		for c := range chunks {
			off, n := l.Extent(c)
			if off != end || n < 0 || n%elem != 0 {
				t.Fatalf("chunk %d is [%d:+%d], the one before ends at %d", c, off, n, end)
			}
			if c > 0 && n > 0 && total >= 4*64*elem*chunks && off%64 != 0 {
				t.Fatalf("chunk %d of %d bytes of %d begins inside a cache line, at %d", c, total, chunks, off)
			}
			end = off + n
		}
		if end != total {
			t.Fatalf("chunks end at %d of %d", end, total)
		}
	})
}

// A lender is both ends of a connection that copies nothing: the receiver reads
// the sender's memory as late as it can, and Flush waits until it has.
type lender struct {
	slots   chan []byte
	stamps  chan transport.Stamp
	taken   sync.WaitGroup
	reserve []byte
	held    []byte
}

func newLender(depth int) *lender {
	return &lender{slots: make(chan []byte, depth), stamps: make(chan transport.Stamp, depth)}
}

func (l *lender) Reserve(n int) (mem.Region, error) {
	l.reserve = make([]byte, n)
	return mem.Host(l.reserve), nil
}

func (l *lender) Publish(s transport.Stamp) error {
	return l.PublishFrom(mem.Host(l.reserve), s)
}

func (l *lender) PublishFrom(src mem.Region, s transport.Stamp) error {
	l.taken.Add(1)
	l.slots <- src.Bytes()
	l.stamps <- s
	return nil
}

func (l *lender) Flush() error {
	l.taken.Wait()
	return nil
}

func (l *lender) Next() (mem.Region, transport.Stamp, error) {
	l.held = <-l.slots
	return mem.Host(l.held), <-l.stamps, nil
}

func (l *lender) Release() error {
	l.taken.Done()
	return nil
}

func (l *lender) NextInto(dst mem.Region) (transport.Stamp, error) {
	b := <-l.slots
	if len(b) != dst.Len() {
		return <-l.stamps, &transport.LengthError{Got: len(b), Want: dst.Len()}
	}
	copy(dst.Bytes(), b)
	l.taken.Done()
	return <-l.stamps, nil
}

func (l *lender) Close() error { return nil }

// A mesh has a lender for every ordered pair.
type mesh [][]*lender

func newMesh(n, depth int) mesh {
	m := make(mesh, n)
	for i := range m {
		m[i] = make([]*lender, n)
		for j := range m[i] {
			m[i][j] = newLender(depth)
		}
	}
	return m
}

// A corner is the Links of one rank in a mesh.
type corner struct {
	mesh
	rank  sched.Rank
	width func(a, b sched.Rank) int // nil: 1
}

func (c corner) Width(peer sched.Rank) int {
	if c.width == nil {
		return 1
	}
	return c.width(c.rank, peer)
}

func (c corner) Send(to sched.Rank) (transport.SendConn, error)   { return c.mesh[c.rank][to], nil }
func (c corner) Recv(from sched.Rank) (transport.RecvConn, error) { return c.mesh[from][c.rank], nil }

// Lent memory is not written before the receiver has taken it: with connections that
// copy nothing, every all-reduce is right, in place and out of place. Under the race
// detector this test finds a wrong Program.lends even where results are right.
func TestLending(t *testing.T) {
	limits := transport.Limits{SlotBytes: 64, Slots: 4}
	schedules := map[string]func(n int) sched.Schedule{
		"ring":     func(n int) sched.Schedule { return ring.AllReduce{N: n} },
		"tree":     func(n int) sched.Schedule { return tree.AllReduce{N: n} },
		"oneshot":  func(n int) sched.Schedule { return direct.OneShot{N: n} },
		"twoshot":  func(n int) sched.Schedule { return direct.TwoShot{N: n} },
		"doubling": func(n int) sched.Schedule { return direct.RecursiveDoubling{N: n} },
		"halving":  func(n int) sched.Schedule { return direct.HalvingDoubling{N: n} },
	}
	for name, of := range schedules {
		for _, n := range []int{1, 2, 3, 5, 8} {
			for _, inPlace := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/%v", name, n, inPlace), func(t *testing.T) {
					allReduce(t, of(n), n, 999, kernels.Sum, 1, inPlace, limits, nil)
				})
				// In has not passed the scalar, so it must not be lent.
				t.Run(fmt.Sprintf("%s/%d/%v/scaled", name, n, inPlace), func(t *testing.T) {
					allReduce(t, of(n), n, 999, kernels.PreMulSumInt(3), 3, inPlace, limits, nil)
				})
			}
		}
	}
}

// Connections may have slots of different sizes. Here slots between hosts are larger or smaller
// than inside a host, and steps that receive from one kind and send to the other cut or join them.
func TestWidths(t *testing.T) {
	hosts := func(local sched.Rank, between, inside int) func(a, b sched.Rank) int {
		return func(a, b sched.Rank) int {
			if a/local == b/local {
				return inside
			}
			return between
		}
	}
	for _, s := range map[string]sched.Schedule{
		"ring": ring.AllReduce{N: 6}, "tree": tree.AllReduce{N: 6}, "doubling": direct.RecursiveDoubling{N: 6},
		"twoshot": direct.TwoShot{N: 6},
		"hier":    hier.AllReduce(ring.ReduceScatter{N: 3}, ring.AllReduce{N: 2}, ring.AllGather{N: 3}),
	} {
		for _, width := range []func(a, b sched.Rank) int{hosts(3, 4, 1), hosts(2, 3, 1), hosts(3, 1, 4)} {
			for _, slots := range []int{2, 4, 8} {
				for _, count := range []int{0, 1, 999} {
					allReduce(t, s, 6, count, kernels.Sum, 1, count == 999, transport.Limits{SlotBytes: 64, Slots: slots}, width)
				}
			}
		}
	}
}

// allReduce sums count random elements of n ranks with op, which multiplies them
// by scale first.
func allReduce(t *testing.T, s sched.Schedule, n, count int, op kernels.RedOp, scale int32, inPlace bool,
	limits transport.Limits, width func(a, b sched.Rank) int) {
	links := newMesh(n, limits.Slots)
	want := make([]int32, count)
	ins, outs := make([][]int32, n), make([][]int32, n)
	for r := range n {
		ins[r], outs[r] = make([]int32, count), make([]int32, count)
		for i := range ins[r] {
			ins[r][i] = rand.Int32()
			want[i] += scale * ins[r][i]
		}
		if inPlace {
			outs[r] = ins[r]
		}
	}
	red, err := kernels.NewReducer(kernels.Int32, op, n)
	require.NoError(t, err)
	errs, results := make([]error, n), make([][]byte, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			p, err := Compile(s, sched.Rank(r), corner{links, sched.Rank(r), width})
			if err != nil {
				errs[r] = err
				return
			}
			l := Even(4*count, s.Shape().In, 4)
			j := Job{Program: p, In: mem.Of(ins[r]).Bytes(), Out: mem.Of(outs[r]).Bytes(), InL: l, OutL: l, Reducer: red,
				Lend: true, Observed: &trace.Call{Size: n, Rank: r, Waits: make([]time.Duration, n)}}
			j.Observed.Reset()
			j.Observed.Steps = make([]trace.Span, 0, 4096)
			errs[r] = New(limits).Run(&j)
			j.Observed.End = trace.Now()
			if errs[r] == nil {
				errs[r] = notes(s, j.Observed)
			}
			results[r] = bytes.Clone(j.Out)
			clear(ins[r]) // all memory is the caller's again
			clear(outs[r])
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	for r := range n {
		require.True(t, bytes.Equal(mem.Of(want).Bytes(), results[r]), "rank %d", r)
	}
}

// notes checks the record of a run: all steps of the first round are there, each with a wait for its message and one
// for a free slot, and the waits add up.
func notes(s sched.Schedule, c *trace.Call) error {
	if err := c.Check(); err != nil {
		return err
	}
	r, steps, waited := sched.Rank(c.Rank), 0, time.Duration(0)
	var received, sent bool
	ended := func() error { // checks the step before
		if steps == 0 {
			return nil
		}
		if st := s.At(r, (steps-1)%s.Len(r)); steps <= s.Len(r) &&
			(received != (st.Recv != sched.Nobody) || sent != (st.Send != sched.Nobody)) {
			return fmt.Errorf("rank %d: step %d is %+v: waited for a message %v, for room %v", r, steps-1, st, received, sent)
		}
		received, sent = false, false
		return nil
	}
	for _, x := range c.Steps {
		if x.What == trace.Step {
			if err := ended(); err != nil {
				return err
			}
			steps++
			if st := s.At(r, int(x.Step)); st.Recv != sched.Rank(x.Recv) || st.Send != sched.Rank(x.Send) ||
				x.Round == 0 && int(x.Step) != steps-1 {
				return fmt.Errorf("rank %d: %+v is not %+v", r, x, st)
			}
			continue
		}
		waited += time.Duration(x.End - x.Start)
		if x.What == trace.Wait && x.Step >= 0 {
			received, sent = received || x.Recv >= 0, sent || x.Send >= 0
		}
	}
	if err := ended(); err != nil || steps < s.Len(r) {
		return cmp.Or(err, fmt.Errorf("rank %d: %d steps of %d", r, steps, s.Len(r)))
	}
	for _, d := range c.Waits {
		waited -= d
	}
	if waited != 0 || c.Lost > 0 {
		return fmt.Errorf("rank %d: waits differ by %v, %d lost", r, waited, c.Lost)
	}
	return nil
}

// A value that a later step overwrites is not lent.
func TestLends(t *testing.T) {
	lent := func(s sched.Schedule, r sched.Rank) (refs []sched.Ref) {
		p, err := Compile(s, r, nil)
		require.NoError(t, err)
		for _, st := range p.steps {
			refs = append(refs, st.lends)
		}
		return refs
	}
	none := sched.Ref{}
	in := func(c int32) sched.Ref { return sched.Ref{Buf: sched.In, Chunk: c} }
	out := func(c int32) sched.Ref { return sched.Ref{Buf: sched.Out, Chunk: c} }
	require.Equal(t, []sched.Ref{in(1), out(0), none}, lent(ring.AllReduce{N: 2}, 0))
	for _, ref := range lent(direct.RecursiveDoubling{N: 4}, 0) {
		require.NotEqual(t, sched.Out, ref.Buf, "a partial sum is overwritten in the next exchange")
	}
}

// A user's own reduction is called with whole elements, however long they are.
func TestWholeElements(t *testing.T) {
	const unit = 24
	var cut atomic.Int64
	add := kernels.UserOpOf("add", unit, func(_ kernels.DataType, dst, src []byte) {
		if len(dst)%unit != 0 {
			cut.Add(1)
		}
		for i := range dst { // the factor is that of the byte's place in its element
			dst[i] += src[i] * byte(1+i%unit)
		}
	})
	for _, limits := range []transport.Limits{{SlotBytes: 64, Slots: 4}, {SlotBytes: 1 << 10, Slots: 3}} {
		for name, s := range map[string]sched.Schedule{"ring": ring.AllReduce{N: 3}, "halving": direct.HalvingDoubling{N: 4},
			"tree": tree.AllReduce{N: 3}} {
			for _, count := range []int{0, 1, 5, 100, 3000} {
				t.Run(fmt.Sprint(name, limits, count), func(t *testing.T) {
					n := s.Shape().Ranks
					red, err := kernels.NewReducer(kernels.Uint8, add, n)
					require.NoError(t, err)
					in := make([]byte, count*unit)
					l := Even(len(in), s.Shape().In, red.Unit())
					links := newMesh(n, limits.Slots)
					var ranks errgroup.Group
					for r := range n {
						ranks.Go(func() error {
							p, err := Compile(s, sched.Rank(r), corner{links, sched.Rank(r), nil})
							if err != nil {
								return err
							}
							j := Job{Program: p, In: in, Out: make([]byte, len(in)), InL: l, OutL: l, Reducer: red}
							return New(limits).Run(&j)
						})
					}
					require.NoError(t, ranks.Wait())
					require.Zero(t, cut.Load(), "pieces that end inside an element")
				})
			}
		}
	}

	red, err := kernels.NewReducer(kernels.Uint8, add, 1)
	require.NoError(t, err)
	p, err := Compile(ring.AllReduce{N: 1}, 0, corner{})
	require.NoError(t, err)
	err = New(transport.Limits{SlotBytes: 16, Slots: 2}).Run(&Job{Program: p, Reducer: red})
	require.EqualError(t, err, "an element of 24 bytes does not fit in a slot of 16: make slots larger")
}

// A slot of another call, or of another length, is a MismatchError with both stamps and both lengths.
func TestMismatch(t *testing.T) {
	limits := transport.Limits{SlotBytes: 64, Slots: 4}
	mine := transport.Stamp{1, 2}
	red, err := kernels.NewReducer(kernels.Int32, kernels.Sum, 2)
	require.NoError(t, err)
	for _, c := range []struct {
		name  string
		s     sched.Schedule
		bytes int // of the peer's slot, where 8 are expected
		stamp transport.Stamp
	}{
		{"another call, to be stored", ring.AllGather{N: 2}, 8, transport.Stamp{1, 3}},
		{"another call, to be reduced", direct.OneShot{N: 2}, 8, transport.Stamp{1, 3}},
		{"another length, to be stored", ring.AllGather{N: 2}, 4, mine},
		{"more, to be stored", ring.AllGather{N: 2}, 12, mine},
		{"another length, to be reduced", direct.OneShot{N: 2}, 4, mine},
		{"more, to be reduced", direct.OneShot{N: 2}, 16, mine},
	} {
		t.Run(c.name, func(t *testing.T) {
			links := newMesh(2, 4)
			p, err := Compile(c.s, 0, corner{links, 0, nil})
			require.NoError(t, err)
			shape := c.s.Shape()
			j := &Job{
				Program: p, In: make([]byte, 8), Out: make([]byte, 8*shape.Out/shape.In), Reducer: red, Stamp: mine,
				InL: Layout{Total: 8, Chunk: 8}, OutL: Layout{Total: 8 * shape.Out / shape.In, Chunk: 8},
			}
			require.NoError(t, links[1][0].PublishFrom(mem.Host(make([]byte, c.bytes)), c.stamp))
			err = New(limits).Run(j)
			var st *StepError
			var m *MismatchError
			require.ErrorAs(t, err, &st)
			require.ErrorAs(t, err, &m)
			require.Equal(t, sched.Rank(1), st.Peer)
			require.Equal(t, MismatchError{Want: mine, Got: c.stamp, WantBytes: 8, GotBytes: c.bytes}, *m)
			require.Contains(t, err.Error(), "recv from rank 1: ranks disagree")
		})
	}
}

func TestCompileRefusesEmptySteps(t *testing.T) {
	_, err := Compile(emptyStep{}, 0, nil)
	require.ErrorContains(t, err, "neither source nor destination")
}

type emptyStep struct{}

func (emptyStep) Shape() sched.Shape { return sched.Shape{Ranks: 1, In: 1, Out: 1} }
func (emptyStep) Len(sched.Rank) int { return 1 }
func (emptyStep) At(sched.Rank, int) sched.Step {
	return sched.Step{Recv: sched.Nobody, Send: sched.Nobody}
}

// A message takes as many slots as Slots says, whatever the queue, the width and the length.
func TestSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := transport.Limits{SlotBytes: rapid.IntRange(1, 9).Draw(t, "slot"),
			Slots: rapid.IntRange(2, 20).Draw(t, "slots")}
		width, n := rapid.IntRange(1, 8).Draw(t, "width"), rapid.IntRange(0, 700).Draw(t, "bytes")
		links := corner{newMesh(2, 2*701), 0, func(a, b sched.Rank) int { return width }}
		p, err := Compile(message{}, 0, links)
		require.NoError(t, err)
		j := &Job{Program: p, In: make([]byte, n), InL: Layout{Total: n, Chunk: n}}
		require.NoError(t, New(limits).Run(j))
		require.Equal(t, len(links.mesh[0][1].slots), Slots(limits, width, n))
	})
}

// A message is one step: rank 0 sends to rank 1.
type message struct{}

func (message) Shape() sched.Shape   { return sched.Shape{Ranks: 2, In: 1, Out: 1} }
func (message) Len(r sched.Rank) int { return 1 - int(r) }
func (message) At(sched.Rank, int) sched.Step {
	return sched.Step{Recv: sched.Nobody, Src: sched.Ref{Buf: sched.In}, Send: 1}
}
