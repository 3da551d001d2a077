package tune

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bench"
)

// A tuning is a measurement under way. All processes have the same lists; only the first
// process has the times, until it shares them.
type tuning struct {
	cfg     *Config
	ranks   int
	buffers []*buffers
	each    time.Duration // of a measurement
	curves  []curve

	gpu, driver, path string
}

// A curve is the times of one collective in microseconds, by size and algorithm,
// infinite where an algorithm cannot serve. Columns from registered on are of
// algorithms for registered memory alone.
type curve struct {
	bench.Collective
	counts     []int
	sizes      []int64 // in bytes, of these counts
	asked      []int64 // the sizes of the Sweep that the counts were made from
	algos      []string
	registered int
	us         [][]float64
	// work is how many blocks there is work for, less are the times with each of
	// Config.Blocks, by size and algorithm: 0 and nil where fewer are not tried.
	work [][]int
	less [][][]float64
}

// ask finds the curves to measure.
func (t *tuning) ask(comm *ringo.Comm, sizes []int64) (err error) {
	c, n := t.cfg, t.ranks
	width := c.Type.Size()
	if t.gpu, err = comm.Device().Name(); err != nil {
		return err
	}
	t.driver = comm.Device().DriverVersion()
	if n > 1 {
		t.path, _, _ = strings.Cut(comm.DeviceTransport((comm.Rank()+1)%n), " over")
	}
	todo := 0
	for _, coll := range c.Collectives {
		k := curve{Collective: coll}
		for _, size := range sizes {
			// Several small sizes may come down to one element a block.
			if count := coll.Count(size, n, width); len(k.counts) == 0 || count > k.counts[len(k.counts)-1] {
				k.counts, k.sizes, k.asked = append(k.counts, count), append(k.sizes, coll.Size(count, n, width)),
					append(k.asked, size)
			}
		}
		for _, registered := range []bool{false, true} {
			for _, count := range k.counts {
				for _, a := range comm.DeviceAlgorithms(coll.Kind, count*width, registered) {
					if !slices.Contains(k.algos, a) {
						k.algos = append(k.algos, a)
					}
				}
			}
			if !registered {
				k.registered = len(k.algos)
			}
		}
		for _, count := range k.counts {
			row := make([]float64, len(k.algos))
			for i, a := range k.algos {
				row[i] = math.Inf(1)
				if slices.Contains(comm.DeviceAlgorithms(coll.Kind, count*width, i >= k.registered), a) {
					todo++
				}
			}
			k.us = append(k.us, row)
		}
		todo += len(k.counts) * len(c.Blocks)
		t.curves = append(t.curves, k)
	}
	t.each = max(time.Millisecond, min(20*time.Millisecond, c.Time/time.Duration(max(1, todo))))
	return nil
}

// algorithms are all algorithms that have to be measured.
func (t *tuning) algorithms() (list []string) {
	for _, name := range ringo.Algorithms() {
		if slices.ContainsFunc(t.curves, func(k curve) bool { return slices.Contains(k.algos, name) }) {
			list = append(list, name)
		}
	}
	return list
}

// plan is the plan of the fastest algorithms.
func (t *tuning) plan() *ringo.Plan {
	p := &ringo.Plan{
		Machine: fmt.Sprintf("%d × %s", t.ranks, t.gpu), Driver: t.driver, Date: time.Now().UTC().Format(time.DateOnly),
		GPUs: []string{t.gpu}, Path: t.path,
	}
	for i := range t.curves {
		p.Rows = append(p.Rows, t.curves[i].rows(t.cfg, t.ranks)...)
	}
	p.Sort()
	return p
}

// rows are the curve's rows of a plan. Registered memory has rows of its own only
// where they differ.
func (k *curve) rows(c *Config, ranks int) (rows []ringo.PlanRow) {
	for _, registered := range []bool{true, false} {
		list := segment(k.times(registered))
		if registered && !slices.ContainsFunc(list, func(r run) bool { return r.algo >= k.registered }) {
			continue
		}
		first := 0
		for i, r := range list {
			row := ringo.PlanRow{Kind: k.Kind, From: ranks, To: ranks, Registered: registered,
				UpTo: max(k.asked[r.last], k.sizes[r.last]), Algo: k.algos[r.algo]}
			if i == len(list)-1 {
				row.UpTo = -1
			}
			row.Blocks, row.Few = k.blocksOf(c, r.algo, first, r.last)
			rows, first = append(rows, row), r.last+1
		}
	}
	return rows
}

// times are the columns that count for a kind of memory.
func (k *curve) times(registered bool) [][]float64 {
	us := make([][]float64, len(k.us))
	for i := range us {
		us[i] = k.us[i]
		if !registered {
			us[i] = us[i][:k.registered]
		}
	}
	return us
}

// print writes the times as a table, the chosen one of each size marked: * for any
// memory, + for registered memory where that is another.
func (k *curve) print(w io.Writer, c *Config) {
	any, registered := pick(segment(k.times(false)), len(k.sizes)), pick(segment(k.times(true)), len(k.sizes))
	fmt.Fprintf(w, "\n# %s, %v, graphs of %d, out of place, us; * chosen, + chosen for registered memory\n#%11s", k.Name,
		c.Type, c.Graph, "size (B)")
	for _, a := range k.algos {
		fmt.Fprintf(w, " %11s", a)
	}
	fmt.Fprintln(w)
	for i, size := range k.sizes {
		fmt.Fprintf(w, "%12d", size)
		for a, us := range k.us[i] {
			text, mark := fmt.Sprintf("%.2f", us), " "
			switch {
			case math.IsInf(us, 1):
				text = "-"
			case a == any[i]:
				mark = "*"
			case a == registered[i]:
				mark = "+"
			}
			fmt.Fprintf(w, " %10s%s", text, mark)
		}
		fmt.Fprintln(w)
	}
}

// pick is the algorithm of each size.
func pick(runs []run, sizes int) []int {
	list := make([]int, 0, sizes)
	for _, r := range runs {
		for len(list) <= r.last {
			list = append(list, r.algo)
		}
	}
	return list
}
