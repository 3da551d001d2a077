package bench

import (
	"fmt"
	"slices"
	"time"
)

// Amounts of measurements beside computing.
const (
	besideEach   = 20                    // collectives of a measurement
	besideRounds = 9                     // of all measurements, in turn
	blockTime    = 40 * time.Microsecond // of a block of computing
	launchWaves  = 16                    // of a kernel, at most
)

// A Beside is how collectives and computing share a GPU: some collectives on one stream,
// and on another one kernels that fill all multiprocessors, which begin at the same time.
// Times are averages over ranks, of all collectives and of all computing.
type Beside struct {
	Collectives int    `json:"collectives"` // of a measurement
	Blocks      int    `json:"blocks"`      // of computing
	Alone       Timing `json:"alone"`
	Compute     Timing `json:"compute"` // computing alone
	Both        Timing `json:"both"`    // until the later one ends
	// CollectivesBeside and ComputeBeside are when each of the two ended in Both.
	CollectivesBeside Timing `json:"collectives_beside"`
	ComputeBeside     Timing `json:"compute_beside"`

	Ideal  float64 `json:"ideal_us"` // the longer of the two alone
	Sum    float64 `json:"sum_us"`   // one after the other
	Slower float64 `json:"slower"`   // ComputeBeside in units of Compute
	// CollectivesSlower is CollectivesBeside in units of Alone.
	CollectivesSlower float64 `json:"collectives_slower"`
	Computing         string  `json:"computing,omitempty"` // what multiplies matrices, "" for blocks of fixed work
}

// A Timing is a time in microseconds over several rounds: the median and the least.
type Timing struct {
	Time float64 `json:"time_us"`
	Min  float64 `json:"min_us"`
}

func timingOf(us []float64) Timing {
	us = slices.Sorted(slices.Values(us))
	n := len(us)
	return Timing{(us[(n-1)/2] + us[n/2]) / 2, us[0]}
}

// besideOf completes a Beside. The times are of each round.
func besideOf(collectives, blocks int, alone, computing []float64, both []ends) *Beside {
	b := &Beside{Collectives: collectives, Blocks: blocks, Alone: timingOf(alone), Compute: timingOf(computing)}
	var all, comm, comp []float64
	for _, s := range both {
		all, comm, comp = append(all, s.both), append(comm, s.collectives), append(comp, s.computing)
	}
	b.Both, b.CollectivesBeside, b.ComputeBeside = timingOf(all), timingOf(comm), timingOf(comp)
	b.Ideal, b.Sum = max(b.Alone.Time, b.Compute.Time), b.Alone.Time+b.Compute.Time
	b.Slower = over(b.ComputeBeside.Time, b.Compute.Time)
	b.CollectivesSlower = over(b.CollectivesBeside.Time, b.Alone.Time)
	return b
}

// ofIdeal is Both in units of Ideal.
func (b *Beside) ofIdeal() float64 { return over(b.Both.Time, b.Ideal) }

// over is a/b, 0 where b was too short for the clock.
func over(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

// besideNote says what the columns of the table mean.
func besideNote(cfg *Config) string {
	if cfg.BesideProduct > 0 {
		return besideProducts(cfg)
	}
	amount := "about as long as the slowest program's collectives take"
	if cfg.BesideTime > 0 {
		amount = fmt.Sprintf("about %v", cfg.BesideTime)
	}
	return fmt.Sprintf("beside: kernels of up to %d waves of blocks, a block a multiprocessor and %v, for %s; times "+
		"until all collectives and all of it have ended, medians of %d rounds in turn",
		launchWaves, blockTime, amount, cfg.Repetitions)
}

// besideProducts is besideNote for products of matrices.
func besideProducts(cfg *Config) string {
	amount := "the slowest program's collectives take"
	if cfg.BesideTime > 0 {
		amount = fmt.Sprintf("%v is", cfg.BesideTime)
	}
	return fmt.Sprintf("beside: products of matrices, %v each, about as long as %s; times until all collectives and all "+
		"of them have ended, medians of %d rounds in turn",
		cfg.BesideProduct, amount, cfg.Repetitions)
}
