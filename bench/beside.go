package bench

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
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

// Columns of a table of Besides, ours and then those of each peer.
const (
	besideOurs = "  %5s %8s %8s %8s %8s %8s %6s %6s %6s %6s"
	besidePeer = "  %8s %8s %6s %6s %6s %7s"
)

func (p *printer) besideHeader() {
	ours := func(s ...any) string { return fmt.Sprintf(besideOurs, s...) }
	first := p.blank() + "  " + center("collectives and compute", 78)
	names := p.left("size", "count", "type", "redop", "root") +
		ours("coll.", "alone", "compute", "both", "ideal", "sum", "both /", "comp.", "coll.", "#wrong")
	units := p.left("(B)", "(elements)", "", "", "") +
		ours("", "(us)", "(us)", "(us)", "(us)", "(us)", "ideal", "slower", "slower", "")
	for _, peer := range p.peers {
		peers := func(s ...any) string { return fmt.Sprintf(besidePeer, s...) }
		first += "  " + center(peer, 46)
		names += peers("alone", "both", "both /", "comp.", "coll.", "ratio")
		units += peers("(us)", "(us)", "ideal", "slower", "slower", "of both")
	}
	for _, line := range []string{first, names, units} {
		fmt.Fprintln(p.w, "#"+strings.TrimRight(line[1:], " "))
	}
}

// besideColumns are the columns of one row, ours and each peer's. The ratio is the peer's time
// of both in units of ours: above 1 we are ahead.
func (p *printer) besideColumns(r *Row, peers map[string]*Row) string {
	b := r.Beside
	if b == nil { // a row of another kind of run
		return ""
	}
	wrong := "N/A"
	if m := r.OutOfPlace; m != nil {
		if m.Wrong != nil {
			wrong = strconv.FormatInt(*m.Wrong, 10)
			p.wrong += *m.Wrong
		}
		p.busbw += m.BusBW
		p.count++
	}
	line := fmt.Sprintf(besideOurs, strconv.Itoa(b.Collectives), formatTime(b.Alone.Time), formatTime(b.Compute.Time),
		formatTime(b.Both.Time),
		formatTime(b.Ideal), formatTime(b.Sum), formatRatio(b.ofIdeal()), formatRatio(b.Slower),
		formatRatio(b.CollectivesSlower), wrong)
	for _, name := range p.peers {
		peer := peers[name]
		if peer == nil || peer.Beside == nil {
			line += fmt.Sprintf(besidePeer, "-", "-", "-", "-", "-", "-")
			continue
		}
		o, ratio := peer.Beside, math.NaN()
		if b.Both.Time > 0 {
			ratio = o.Both.Time / b.Both.Time
		}
		line += fmt.Sprintf(besidePeer, formatTime(o.Alone.Time), formatTime(o.Both.Time), formatRatio(o.ofIdeal()),
			formatRatio(o.Slower), formatRatio(o.CollectivesSlower), formatRatio(ratio))
		if m := peer.OutOfPlace; m != nil && m.Wrong != nil {
			p.wrong += *m.Wrong
		}
	}
	return line
}
