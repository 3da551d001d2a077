package handbook_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/ring/hier"
	"github.com/ringo-go/ringo/ring/tree"
	"github.com/ringo-go/ringo/sched"
)

// A kind is an algorithm that the handbook speaks of.
type kind struct {
	goal  sched.Goal
	build func(n int) sched.Schedule
}

const node = 4 // ranks of a node in the handbook's hierarchies

var schedules = map[string]kind{
	"ring.AllReduce":           {sched.AllReduce, func(n int) sched.Schedule { return ring.AllReduce{N: n} }},
	"ring.AllGather":           {sched.AllGather, func(n int) sched.Schedule { return ring.AllGather{N: n} }},
	"ring.ReduceScatter":       {sched.ReduceScatter, func(n int) sched.Schedule { return ring.ReduceScatter{N: n} }},
	"ring.Broadcast":           {sched.Broadcast(0), func(n int) sched.Schedule { return ring.Broadcast{N: n} }},
	"radix":                    {sched.AllReduce, func(n int) sched.Schedule { return radix(n, 4) }},
	"relay":                    {sched.Broadcast(0), func(n int) sched.Schedule { return relay{n} }},
	"tree.AllReduce":           {sched.AllReduce, func(n int) sched.Schedule { return tree.AllReduce{N: n} }},
	"tree.Broadcast":           {sched.Broadcast(0), func(n int) sched.Schedule { return tree.Broadcast{N: n} }},
	"tree.BinomialBroadcast":   {sched.Broadcast(0), func(n int) sched.Schedule { return tree.BinomialBroadcast{N: n} }},
	"direct.OneShot":           {sched.AllReduce, func(n int) sched.Schedule { return direct.OneShot{N: n} }},
	"direct.TwoShot":           {sched.AllReduce, func(n int) sched.Schedule { return direct.TwoShot{N: n} }},
	"direct.RecursiveDoubling": {sched.AllReduce, func(n int) sched.Schedule { return direct.RecursiveDoubling{N: n} }},
	"direct.HalvingDoubling":   {sched.AllReduce, func(n int) sched.Schedule { return direct.HalvingDoubling{N: n} }},
	"direct.AllGather":         {sched.AllGather, func(n int) sched.Schedule { return direct.AllGather{N: n} }},
	"direct.LogAllGather":      {sched.AllGather, func(n int) sched.Schedule { return direct.LogAllGather{N: n} }},
	"direct.LogReduceScatter":  {sched.ReduceScatter, func(n int) sched.Schedule { return direct.LogReduceScatter{N: n} }},
	"hier.AllReduce": {sched.AllReduce, func(n int) sched.Schedule {
		return hier.AllReduce(ring.ReduceScatter{N: node}, ring.AllReduce{N: n / node}, ring.AllGather{N: node})
	}},
}

// Figures and tables are of schedules that are right.
func TestSchedulesAreRight(t *testing.T) {
	for name, k := range schedules {
		require.NoError(t, sched.Check(k.build(16), k.goal, 2, false), name)
	}
}

func find(name string) kind {
	k, ok := schedules[name]
	if !ok {
		panic(fmt.Sprintf("no schedule %s: there are %v", name, slices.Sorted(maps.Keys(schedules))))
	}
	return k
}

// table is what the ranks of a schedule do: table SCHEDULE n [rank …].
func table(arguments []string) string {
	s := find(arguments[0]).build(number(arguments[1]))
	all := strings.Split(strings.TrimSpace(sched.Format(s)), "\n\n")
	if len(arguments) == 2 {
		return fenced("text", strings.Join(all, "\n\n"))
	}
	var some []string
	for _, a := range arguments[2:] {
		some = append(some, all[number(a)+1])
	}
	return fenced("text", strings.Join(some, "\n\n"))
}

// costs counts hops and what the busiest rank sends: costs n,n,… SCHEDULE ….
func costs(arguments []string) string {
	sizes := strings.Split(arguments[0], ",")
	var b strings.Builder
	b.WriteString("| schedule |")
	for _, n := range sizes {
		fmt.Fprintf(&b, " %s ranks: hops | sends |", n)
	}
	b.WriteString("\n|---|" + strings.Repeat("--:|--:|", len(sizes)) + "\n")
	for _, name := range arguments[1:] {
		fmt.Fprintf(&b, "| `%s` |", name)
		for _, size := range sizes {
			n := number(size)
			s := find(name).build(n)
			c := must(sched.CostOf(s, n))
			chunks := max(s.Shape().In, s.Shape().Out)
			fmt.Fprintf(&b, " %d | %s S |", c.Hops, decimal(float64(c.Sent)/float64(chunks)))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// orders is in which order each chunk is added up: orders n SCHEDULE ….
func orders(arguments []string) string {
	n := number(arguments[0])
	var b strings.Builder
	b.WriteString("| all-reduce | chunk | order |\n|---|---|---|\n")
	for _, name := range arguments[1:] {
		k := find(name)
		s := k.build(n)
		sums := make([]string, s.Shape().Out)
		must(0, sched.Watch(s, k.goal, n+1, false, func(e sched.Event) {
			if e.Rank == 0 && e.Dst.Buf == sched.Out {
				sums[e.Dst.Chunk], _, _ = strings.Cut(e.Value.String(), "[")
			}
		}))
		for c, sum := range sums {
			fmt.Fprintf(&b, "| `%s` | %d of %d | %s |\n", name, c, len(sums), strings.ReplaceAll(sum, "+", " + "))
		}
	}
	return b.String()
}

// decimal writes a number with up to two places.
func decimal(x float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", x), "0"), ".")
}
