package sched_test

import (
	"testing"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/sched"
)

// decode makes a table of any bytes: a shape, and then steps for the ranks in
// turn. Most of them are nonsense.
func decode(data []byte) table {
	next := func() int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(int8(b))
	}
	t := table{shape: sched.Shape{Ranks: next() & 7, In: next() & 7, Out: next() & 7, Tmp: next() & 3}}
	t.steps = make([][]sched.Step, t.shape.Ranks)
	ref := func() sched.Ref { return sched.Ref{Buf: sched.Buffer(next() & 7), Chunk: int32(next())} }
	for i := 0; len(data) > 0 && t.shape.Ranks > 0; i++ {
		r := i % t.shape.Ranks
		t.steps[r] = append(t.steps[r], sched.Step{Recv: sched.Rank(next()), Send: sched.Rank(next()), Src: ref(),
			Dst: ref()})
	}
	return t
}

// encode is decode backwards, for the seeds.
func encode(s sched.Schedule) []byte {
	shape := s.Shape()
	data := []byte{byte(shape.Ranks), byte(shape.In), byte(shape.Out), byte(shape.Tmp)}
	for i := range s.Len(0) {
		for r := range sched.Rank(shape.Ranks) {
			t := s.At(r, i)
			data = append(data, byte(t.Recv), byte(t.Send), byte(t.Src.Buf), byte(t.Src.Chunk), byte(t.Dst.Buf),
				byte(t.Dst.Chunk))
		}
	}
	return data
}

// FuzzCheck wants that no table makes Check panic or hang, that it says the same
// twice, and that what passes passes at a greater depth too.
func FuzzCheck(f *testing.F) {
	f.Add(encode(ring.AllReduce{N: 3}), uint8(0), uint8(2), false)
	f.Add(encode(ring.AllGather{N: 3}), uint8(1), uint8(2), true)
	f.Add(encode(ring.ReduceScatter{N: 3}), uint8(2), uint8(2), true)
	f.Add(encode(direct.AlltoAll{N: 3}), uint8(3), uint8(1), false)
	f.Add(encode(ring.Broadcast{N: 3}), uint8(4), uint8(2), false)
	f.Fuzz(func(t *testing.T, data []byte, goal, depth uint8, inPlace bool) {
		s := decode(data)
		goals := []sched.Goal{
			sched.AllReduce, sched.AllGather, sched.ReduceScatter, sched.AlltoAll,
			sched.Broadcast(0), sched.Reduce(1), sched.Gather(0), sched.Scatter(-1),
		}
		g := goals[int(goal)%len(goals)]
		err := sched.Check(s, g, int(depth), inPlace)
		if again := sched.Check(s, g, int(depth), inPlace); (err == nil) != (again == nil) ||
			err != nil && err.Error() != again.Error() {
			t.Fatalf("first %v, then %v", err, again)
		}
		if err == nil {
			if deeper := sched.Check(s, g, int(depth)+1, inPlace); deeper != nil {
				t.Fatalf("passes at depth %d but at the next: %v", depth, deeper)
			}
		}
		_, _ = sched.CostOf(s, int(depth))
		_ = sched.Format(s)
	})
}
