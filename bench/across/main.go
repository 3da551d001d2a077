// Across measures the algorithm that the library chooses across hosts beside each algorithm that can be asked for.
// Every round has one operation of each, in turn, so that other work of the machines meets all alike. The process is
// one rank of a job that a launcher has started; rank 0 reports. scripts/across-hosts runs it on links of its own.
//
//	across -sizes 1024,16384 -rounds 40 allreduce broadcast
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bench"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("across: ")
	sizes := flag.String("sizes", "1024,16384,262144,4194304", "bytes of the larger buffer of a rank")
	rounds := flag.Int("rounds", 21, "operations of each algorithm")
	flag.Parse()
	ctx := context.Background()
	c, err := ringo.OpenEnv(ctx, ringo.Config{})
	if err == nil {
		for _, name := range flag.Args() {
			err = cmp.Or(err, measure(ctx, c, name, strings.Split(*sizes, ","), *rounds))
		}
		err = errors.Join(err, c.Close())
	}
	if err != nil {
		log.Fatal(err)
	}
}

// A candidate is an algorithm, or "auto", and a communicator that is asked for it.
type candidate struct {
	algo string
	comm *ringo.Comm
}

func measure(ctx context.Context, c *ringo.Comm, name string, sizes []string, rounds int) error {
	collective, err := bench.Find(name)
	if err != nil {
		return err
	}
	choice, err := ringo.Explain(collective.Kind, c.Size(), 2, 0, 0, ringo.Config{}) // with hierarchy, on whatever hosts
	if err != nil {
		return err
	}
	var all []candidate
	for _, a := range append([]string{"auto", choice.Algo}, choice.Others...) {
		child, err := c.SplitWith(ctx, 0, c.Rank(), ringo.Config{Algo: a})
		if err != nil {
			return err
		}
		defer child.Close()
		all = append(all, candidate{a, child})
	}
	for _, size := range sizes {
		bytes, err := strconv.Atoi(size)
		if err != nil {
			return err
		}
		times, err := timesOf(c, all, collective.Kind, bytes, rounds)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			report(name, bytes, all, times)
		}
	}
	return nil
}

// timesOf is, by candidate and round, the time of the slowest rank, in ns.
func timesOf(c *ringo.Comm, all []candidate, kind ringo.Kind, bytes, rounds int) ([][]int64, error) {
	n := c.Size()
	share := bytes / 4 / n
	in, out := make([]float32, share*n), make([]float32, share*n)
	calls := map[ringo.Kind]*ringo.Call{
		ringo.KindAllReduce:     ringo.AllReduceToOf(out, in, ringo.Sum),
		ringo.KindReduce:        ringo.ReduceOf(out, in, ringo.Sum, 0),
		ringo.KindBroadcast:     ringo.BroadcastToOf(out, in, 0),
		ringo.KindAllGather:     ringo.AllGatherOf(out, in[:share]),
		ringo.KindReduceScatter: ringo.ReduceScatterOf(out[:share], in, ringo.Sum),
		ringo.KindAlltoAll:      ringo.AlltoAllOf(out, in, n),
		ringo.KindGather:        ringo.GatherOf(out, in[:share], 0),
		ringo.KindScatter:       ringo.ScatterOf(out[:share], in, 0),
	}
	call := calls[kind]
	if call == nil {
		return nil, fmt.Errorf("%v is not measured here", kind)
	}
	times := make([][]int64, len(all))
	for round := range rounds + 2 { // two to warm up
		for i := range all {
			i = (i + round) % len(all)
			if err := ringo.Barrier(c); err != nil {
				return nil, err
			}
			began := time.Now()
			if err := all[i].comm.Do(call); err != nil {
				return nil, err
			}
			took := []int64{int64(time.Since(began))}
			if err := ringo.AllReduce(c, took, ringo.Max); err != nil {
				return nil, err
			}
			if round > 1 {
				times[i] = append(times[i], took[0])
			}
		}
	}
	return times, nil
}

// report prints medians in µs, and the median ratio of auto to the quickest of the others.
func report(name string, bytes int, all []candidate, times [][]int64) {
	fmt.Printf("%-13s %8d B", name, bytes)
	best := 1
	for i, a := range all {
		fmt.Printf("  %s %.0f", a.algo, float64(median(times[i]))/1e3)
		if i > 0 && median(times[i]) < median(times[best]) {
			best = i
		}
	}
	ratios := make([]float64, len(times[0]))
	for round := range ratios {
		ratios[round] = float64(times[0][round]) / float64(times[best][round])
	}
	fmt.Printf("  auto / %s %.2f\n", all[best].algo, median(ratios))
}

func median[T cmp.Ordered](list []T) T { return slices.Sorted(slices.Values(list))[len(list)/2] }
