package bench

import (
	"time"

	"github.com/ringo-go/ringo"
)

// A series is one operation at several sizes.
type series struct {
	Collective
	typ    ringo.DataType
	op     ringo.RedOp
	root   int
	counts []int
}

// opName and rootNumber are the columns "redop" and "root".
func (s *series) opName() string {
	if s.Reduces() {
		return s.op.String()
	}
	return "none"
}

func (s *series) rootNumber() int {
	if s.Rooted() {
		return s.root
	}
	return -1
}

// row is a program's row of the series on n ranks, with the time of an operation out of place.
func (s *series) row(program string, count, n int, us float64, iterations int) Row {
	size := s.Size(count, n, s.typ.Size())
	return Row{Program: program, Collective: s.Name, Size: size, Count: count, Type: s.typ.String(), Op: s.opName(),
		Root: s.rootNumber(), OutOfPlace: measure(s.Collective, size, n, us, iterations)}
}

// plan lists everything to be measured on n ranks, in order.
func (c *Config) plan(n int) []series {
	sizes, _ := c.Sizes()
	var all []series
	for _, coll := range c.Collectives {
		ops, roots := []ringo.RedOp{{}}, []int{0}
		if coll.Reduces() {
			ops = c.Ops
		}
		if coll.Rooted() {
			roots = []int{c.Root}
			if c.Root < 0 {
				roots = make([]int, n)
				for r := range roots {
					roots[r] = r
				}
			}
		}
		for _, t := range c.Types {
			var counts []int
			for _, size := range sizes {
				// Several small sizes may come down to one element a block.
				if k := c.whole(coll.Count(size, n, t.Size()), t.Size()); len(counts) == 0 || k > counts[len(counts)-1] {
					counts = append(counts, k)
				}
			}
			for _, op := range ops {
				if coll.Reduces() && !possible(op, t) {
					continue
				}
				for _, root := range roots {
					all = append(all, series{coll, t, op, root, counts})
				}
			}
		}
	}
	return all
}

// When Iterations is 0 a measurement takes maxTime at least: long enough for the
// clock and for a few slices of the scheduler of a busy machine. A run of very
// many measurements gets less for each, so as to take about wholeTime.
const (
	maxTime       = 20 * time.Millisecond
	minTime       = 2 * time.Millisecond
	wholeTime     = time.Minute
	minIterations = 5
	maxIterations = 1 << 22
)

// measureTime is the least time of each measurement of a plan.
func measureTime(plan []series) time.Duration {
	n := 0
	for i := range plan {
		n += 2 * len(plan[i].counts)
	}
	return max(minTime, min(maxTime, wholeTime/time.Duration(max(n, 1)))).Round(time.Millisecond)
}
