package command

import (
	"fmt"
	"io"
	"strconv"

	"github.com/ringo-go/ringo/bench"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/sched"
)

// costSteps bounds the steps of a schedule whose cost is counted: so many take a second or two.
const costSteps = 1_000_000

func printCost(w io.Writer, s sched.Schedule, bytes int64) {
	shape := s.Shape()
	if n := stepsOf(s); n > costSteps {
		fmt.Fprintf(w, "cost:      not counted: all ranks have %d steps together\n", n)
		return
	}
	c, err := sched.CostOf(s, 8)
	if err != nil {
		fmt.Fprintf(w, "cost:      %v\n", err)
		return
	}
	chunk := float64(bytes) / float64(max(shape.In, shape.Out, 1))
	amount := func(chunks int) string { return bench.FormatSize(int64(float64(chunks)*chunk + 0.5)) }
	fmt.Fprintf(w, "cost:      %d messages one after another; the busiest rank has %d steps, sends %s, receives %s, "+
		"combines %s\n",
		c.Hops, c.Steps, amount(c.Sent), amount(c.Received), amount(c.Reduced))
}

// parseSteps turns -steps into a function that prints the tables of steps.
func parseSteps(s string, ranks int) (func(io.Writer, sched.Schedule), error) {
	all := func(w io.Writer, s sched.Schedule) {
		if n := stepsOf(s); n > costSteps {
			fmt.Fprintf(w, "steps:     %d are too many to print: -steps RANK has those of one\n", n)
			return
		}
		fmt.Fprintf(w, "\n%s", sched.Format(s))
	}
	none := func(io.Writer, sched.Schedule) {}
	switch s {
	case "all":
		return all, nil
	case "none":
		return none, nil
	case "auto":
		if ranks <= 8 {
			return all, nil
		}
		return func(w io.Writer, _ sched.Schedule) {
			fmt.Fprintf(w, "steps:     of %d ranks: see them with -steps all, or -steps RANK\n", ranks)
		}, nil
	}
	known := []string{"auto", "all", "none"}
	if best := cli.Closest(s, known); best != "" {
		return nil, cli.Usagef("-steps %s: did you mean %s?", s, best)
	}
	r, err := strconv.Atoi(s)
	if err != nil || r < 0 || r >= ranks {
		return nil, cli.Usagef("-steps %s: want auto, all, none, or a rank from 0 to %d", s, ranks-1)
	}
	return func(w io.Writer, s sched.Schedule) {
		fmt.Fprintf(w, "\nrank %d\n", r)
		for i := range s.Len(sched.Rank(r)) {
			fmt.Fprintf(w, "%5d  %v\n", i, s.At(sched.Rank(r), i))
		}
	}, nil
}
