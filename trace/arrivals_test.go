package trace_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/trace"
)

// came is a Trace of collectives; each is given as the times at which its ranks came.
func came(calls ...[]int64) *trace.Trace {
	t := &trace.Trace{}
	for number, times := range calls {
		for rank, at := range times {
			t.Calls = append(t.Calls, trace.Call{Comm: "c", Rank: rank, Size: len(times), Number: uint32(number + 1), Start: at,
				End: at + 1})
		}
	}
	return t
}

// The delay of the rank that comes last counts from the first rank to come, whichever it is; Late is its median.
func TestLate(t *testing.T) {
	a := came([]int64{30, 10, 50, 20}, []int64{0, 2, 100, 1}, []int64{7, 7, 60, 7}, []int64{9, 5, 5, 5}).Arrivals("c")
	require.Equal(t, trace.Arrivals{Calls: 4, Last: []int{1, 0, 3, 0}, Late: []time.Duration{4, 0, 53, 0}}, a)
	require.Equal(t, "rank 2 came last to 75 % of 4 calls, 53ns after the first; rank 0 to 25 %, 4ns", a.String())
}

func TestLateCounts(t *testing.T) {
	whole := came([]int64{1, 2}, []int64{1, 5})
	part := *whole
	part.Calls = part.Calls[:3]
	require.Equal(t, 1, part.Arrivals("c").Calls, "a call that one rank is not known of")
	for name, wrong := range map[string]func(c *trace.Call){
		"a message": func(c *trace.Call) { c.Number = 0 },
		"a model":   func(c *trace.Call) { c.Model = true },
		"another":   func(c *trace.Call) { c.Comm = "d" },
	} {
		some := came([]int64{1, 2}, []int64{1, 5})
		wrong(&some.Calls[0])
		require.Equal(t, 1, some.Arrivals("c").Calls, name)
	}
	require.Zero(t, came([]int64{1}).Arrivals("c").Calls, "one rank waits for nobody")
	many := trace.Arrivals{Calls: 18}
	for range 9 {
		many.Last, many.Late = append(many.Last, 2), append(many.Late, 1234567)
	}
	want := "rank 0 came last to 11 % of 18 calls, 1.23ms after the first"
	for r := 1; r < 8; r++ {
		want += fmt.Sprintf("; rank %d to 11 %%, 1.23ms", r)
	}
	require.Equal(t, want, many.String(), "eight at most")
}
