package tune

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/ringo-go/ringo"
)

// How much of the bandwidth a row may lose to take fewer blocks, by policy.
const (
	lossDefault    = 0.03
	lossEfficiency = 0.10
)

// maxBlocks is the most blocks that a row may have; it stands for as many as there is work for.
const maxBlocks = 128

// fewer measures the plan's algorithms with fewer blocks, at the sizes where the plan takes them.
func (t *tuning) fewer(ctx context.Context, open func(ringo.Config) ([]*ringo.Comm, error), say io.Writer) error {
	if len(t.cfg.Blocks) == 0 {
		return nil
	}
	if err := with(ctx, open, t.cfg.options("", 0), t.shareTimes); err != nil {
		return err
	}
	for i := range t.curves {
		t.curves[i].choose(t)
	}
	var failed []error
	for _, algo := range t.algorithms() {
		for n, blocks := range t.cfg.Blocks {
			if !slices.ContainsFunc(t.curves, func(k curve) bool { return k.tries(slices.Index(k.algos, algo), blocks) }) {
				continue
			}
			fmt.Fprintf(say, "# %s, %d blocks\n", algo, blocks)
			err := with(ctx, open, t.cfg.options(algo, blocks),
				func(comms []*ringo.Comm) error { return t.measure(comms, algo, n) })
			if err != nil {
				failed = append(failed, fmt.Errorf("%s, %d blocks: %w", algo, blocks, err))
			}
			if ctx.Err() != nil {
				return errors.Join(failed...)
			}
		}
	}
	return errors.Join(failed...)
}

// shareTimes gives all processes the times of the first one.
func (t *tuning) shareTimes(comms []*ringo.Comm) error {
	var us []float64
	for _, k := range t.curves {
		for _, row := range k.us {
			us = append(us, row...)
		}
	}
	errs, all := make([]error, len(comms)), make([][]float64, len(comms))
	var wg sync.WaitGroup
	for i, c := range comms {
		all[i] = slices.Clone(us)
		wg.Go(func() { errs[i] = ringo.Broadcast(c, all[i], 0) })
	}
	wg.Wait()
	us = all[0]
	for _, k := range t.curves {
		for _, row := range k.us {
			us = us[copy(row, us):]
		}
	}
	return errors.Join(errs...)
}

// choose finds the times that are to be measured with fewer blocks: those of the plan's rows,
// where there is work for more.
func (k *curve) choose(t *tuning) {
	k.work, k.less = make([][]int, len(k.us)), make([][][]float64, len(k.us))
	for j := range k.less {
		k.work[j], k.less[j] = make([]int, len(k.algos)), make([][]float64, len(k.algos))
	}
	for _, registered := range []bool{false, true} {
		for j, a := range pick(segment(k.times(registered)), len(k.sizes)) {
			work := t.work(k, j, a)
			if k.less[j][a] != nil || math.IsInf(k.us[j][a], 1) || work <= t.cfg.Blocks[0] {
				continue
			}
			k.work[j][a] = work
			for _, blocks := range t.cfg.Blocks {
				us := math.Inf(1) // until it is measured
				if blocks >= work {
					us = k.us[j][a]
				}
				k.less[j][a] = append(k.less[j][a], us)
			}
		}
	}
}

// work is how many blocks an algorithm has work for at the j-th size.
func (t *tuning) work(k *curve, j, algo int) int {
	gpus := ringo.GPUs{Name: t.gpu, Path: t.path, Registered: algo >= k.registered}
	c, err := ringo.ExplainDevice(k.Kind, t.ranks, 0, k.counts[j]*t.cfg.Type.Size(), 0, gpus,
		ringo.Config{Algo: k.algos[algo], BlockPolicy: "latency"}) // as it is measured
	if err != nil { // several kinds of path: all numbers are tried
		return math.MaxInt
	}
	return c.Blocks
}

// tries reports whether an algorithm is to be measured with a number of blocks, at some size.
func (k *curve) tries(algo, blocks int) bool {
	return algo >= 0 && slices.ContainsFunc(k.work, func(row []int) bool { return row[algo] > blocks })
}

// fewest is the least of some numbers of blocks with which an algorithm loses at most the share
// loss of its bandwidth, at all sizes from first to last; 0 if there is none, or if fewer were
// not tried.
func (k *curve) fewest(blocks []int, algo, first, last int, loss float64) int {
	tried := false
	for n, b := range blocks {
		enough := true
		for j := first; j <= last; j++ {
			if less := k.less[j][algo]; less != nil {
				tried = true
				best := min(k.us[j][algo], slices.Min(less))
				enough = enough && less[n] <= best/(1-loss)
			}
		}
		if !tried {
			return 0
		}
		if enough {
			return b
		}
	}
	return 0
}

// blocksOf are the blocks of a row, for the policies default and efficiency; 0 for as many as
// there is work for.
func (k *curve) blocksOf(c *Config, algo, first, last int) (blocks, few int) {
	if k.less == nil {
		return 0, 0
	}
	blocks, few = k.fewest(c.Blocks, algo, first, last, lossDefault), k.fewest(c.Blocks, algo, first, last, lossEfficiency)
	if blocks == 0 && few > 0 {
		blocks = maxBlocks
	}
	return blocks, few
}

// printBlocks writes the times with fewer blocks as a table.
func (k *curve) printBlocks(w io.Writer, c *Config) {
	if !slices.ContainsFunc(k.work, func(row []int) bool { return slices.Max(row) > 0 }) {
		return
	}
	fmt.Fprintf(w, "\n# %s with fewer blocks, us; * default, + efficiency\n#%11s %11s", k.Name, "size (B)", "algorithm")
	for _, b := range c.Blocks {
		fmt.Fprintf(w, " %10d ", b)
	}
	fmt.Fprintf(w, " %10s\n", "all")
	for _, registered := range []bool{false, true} {
		first := 0
		for _, r := range segment(k.times(registered)) {
			blocks, few := k.blocksOf(c, r.algo, first, r.last)
			for j := first; j <= r.last; j++ {
				if less := k.less[j][r.algo]; less != nil && registered == (r.algo >= k.registered) {
					fmt.Fprintf(w, "%12d %11s", k.sizes[j], k.algos[r.algo])
					for n, us := range less {
						mark := " "
						switch c.Blocks[n] {
						case blocks:
							mark = "*"
						case few:
							mark = "+"
						}
						fmt.Fprintf(w, " %10.2f%s", us, mark)
					}
					fmt.Fprintf(w, " %10.2f\n", k.us[j][r.algo])
				}
			}
			first = r.last + 1
		}
	}
}
