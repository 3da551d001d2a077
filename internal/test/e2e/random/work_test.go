//go:build unix

package random

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ringo-go/ringo"
)

// A wrongData is an operation that has succeeded with other data than it should.
type wrongData string

func (w wrongData) Error() string { return "wrong data: " + string(w) }

// value is element i of what a member gives to a step.
func value(tag uint64, number int32, i int) int64 {
	return int64((tag ^ uint64(number)<<32 + uint64(i)) * 0x9e3779b97f4a7c15 >> 40)
}

func values(tag uint64, number int32, n int) []int64 {
	x := make([]int64, n)
	for i := range x {
		x[i] = value(tag, number, i)
	}
	return x
}

// check compares.
func check(what string, got []int64, want func(i int) int64) error {
	for i, x := range got {
		if y := want(i); x != y {
			return wrongData(fmt.Sprintf("%s: element %d of %d is %d, want %d", what, i, len(got), x, y))
		}
	}
	return nil
}

// A task is a call, and what is to come of it.
type task struct {
	call  *ringo.Call
	check func() error
}

var counts = []int{0, 1, 7, 1000, 20000, 300000}

// collective is a collective of all members of a communicator.
func (m *member) collective(c *ringo.Comm, who []int32, dice *rand.Rand) error {
	t := taskOf(c, who, dice)
	if err := m.do(c, t.call); err != nil {
		return err
	}
	return t.check()
}

// taskOf is a rank's part of a collective.
func taskOf(c *ringo.Comm, who []int32, dice *rand.Rand) task {
	tag, n, me, size := dice.Uint64(), counts[dice.IntN(len(counts))], c.Rank(), c.Size()
	root := dice.IntN(size)
	mine := who[me]
	sum := func(i int) (s int64) {
		for _, w := range who {
			s += value(tag, w, i)
		}
		return s
	}
	nothing := func() error { return nil }
	switch dice.IntN(8) {
	case 0:
		x := values(tag, mine, n)
		return task{ringo.AllReduceOf(x, ringo.Sum), func() error { return check("AllReduce", x, sum) }}
	case 1:
		x := values(tag, mine, n)
		return task{ringo.BroadcastOf(x, root), func() error { return check("Broadcast", x, func(i int) int64 { return value(tag, who[root], i) }) }}
	case 2:
		out := make([]int64, n*size)
		return task{ringo.AllGatherOf(out, values(tag, mine, n)), func() error {
			return check("AllGather", out, func(i int) int64 { return value(tag, who[i/n], i%n) })
		}}
	case 3:
		out := make([]int64, n)
		return task{ringo.ReduceScatterOf(out, values(tag, mine, n*size), ringo.Sum), func() error {
			return check("ReduceScatter", out, func(i int) int64 { return sum(me*n + i) })
		}}
	case 4:
		n /= 4
		out := make([]int64, n*size)
		return task{ringo.AlltoAllOf(out, values(tag, mine, n*size), size), func() error {
			return check("AlltoAll", out, func(i int) int64 { return value(tag, who[i/n], me*n+i%n) })
		}}
	case 5:
		out := make([]int64, n)
		return task{ringo.ReduceOf(out, values(tag, mine, n), ringo.Sum, root), func() error {
			if me != root {
				return nil
			}
			return check("Reduce", out, sum)
		}}
	case 6:
		var out []int64
		if me == root {
			out = make([]int64, n*size)
		}
		return task{ringo.GatherOf(out, values(tag, mine, n), root), func() error {
			return check("Gather", out, func(i int) int64 { return value(tag, who[i/n], i%n) })
		}}
	}
	return task{ringo.BarrierOf(), nothing}
}

// started has collectives under way side by side with one that is waited for.
func (m *member) started(dice *rand.Rand) error {
	var all []task
	var under []*ringo.Pending
	for range 1 + dice.IntN(4) {
		t := taskOf(m.c, m.who, dice)
		all, under = append(all, t), append(under, m.c.Start(t.call))
	}
	err := m.collective(m.c, m.who, dice)
	for i, p := range under {
		if e := p.Wait(); e != nil {
			err = errors.Join(err, e)
		} else if e := all[i].check(); e != nil {
			err = errors.Join(err, e)
		}
	}
	return err
}

// messages are sent in one order that all know, which each member cuts into groups where it likes. No cut makes members wait for each other:
// the first message that has not arrived is in the group that both of its ends are in.
func (m *member) messages(dice *rand.Rand) error {
	own := rand.New(rand.NewPCG(m.seed^dice.Uint64(), uint64(m.number)))
	var group []task
	for range 1 + dice.IntN(12) {
		tag, from, to := dice.Uint64(), dice.IntN(len(m.who)), dice.IntN(len(m.who))
		n := []int{0, 1, 100, 5000, 393216}[dice.IntN(5)] // up to 3 MiB
		me := m.c.Rank()
		if from == to { // needs both of its ends in a group
			continue
		}
		if me == from {
			group = append(group, task{ringo.SendOf(values(tag, m.who[me], n), to), func() error { return nil }})
		}
		if me == to {
			x := make([]int64, n)
			group = append(group, task{ringo.RecvOf(x, from), func() error {
				return check(fmt.Sprintf("message from member %d", m.who[from]), x, func(i int) int64 { return value(tag, m.who[from], i) })
			}})
		}
		if own.IntN(3) == 0 {
			if err := m.together(group); err != nil {
				return err
			}
			group = nil
		}
	}
	return m.together(group)
}

func (m *member) together(group []task) error {
	if len(group) == 1 {
		if err := m.do(m.c, group[0].call); err != nil {
			return err
		}
		return group[0].check()
	}
	g := ringo.NewGroup()
	for _, t := range slices.Clone(group) {
		if m.end.how == "late" {
			t.call.Timeout = lateness / 3
		}
		g.Add(m.c, t.call)
	}
	if err := g.Run(); err != nil {
		return err
	}
	for _, t := range group {
		if err := t.check(); err != nil {
			return err
		}
	}
	return nil
}
