package chart

import (
	"fmt"
	"math"
	"strconv"
)

// An axis shows values from lo to hi.
type axis struct {
	lo, hi float64
	log    bool
	ticks  []tick
}

type tick struct {
	at    float64
	label string // "" for a small one
}

// position is where a value is, from 0 to 1.
func (a *axis) position(v float64) float64 {
	if a.log {
		return math.Log(v/a.lo) / math.Log(a.hi/a.lo)
	}
	return (v - a.lo) / (a.hi - a.lo)
}

// value is the inverse of position.
func (a *axis) value(p float64) float64 {
	if a.log {
		return a.lo * math.Pow(a.hi/a.lo, p)
	}
	return a.lo + p*(a.hi-a.lo)
}

// sizes is the horizontal axis, which the panels of a row have in common.
func (r *Row) sizes() axis {
	least, most := math.Inf(1), 0.0
	for _, p := range r.Panels {
		for _, l := range p.Lines {
			for _, x := range l.X {
				least, most = min(least, x), max(most, x)
			}
		}
	}
	if !(least < most) {
		least, most = least/2, most*2
	}
	return axis{least, most, true, sizeTicks(least, most)}
}

// values is the vertical axis of a panel.
func (p *Panel) values() (y axis) {
	low, high := math.Inf(1), 0.0
	for _, l := range p.Lines {
		for _, v := range l.Y {
			low, high = min(low, v), max(high, v)
		}
	}
	switch p.Scale {
	case Time:
		y.log, y.lo = true, math.Pow(10, math.Floor(math.Log10(low)))
		y.hi = max(10*y.lo, high*1.15)
		y.ticks = timeTicks(y.lo, y.hi)
	case Amount:
		y.hi = max(high, 1e-3) * 1.08
		y.ticks = evenTicks(y.hi)
	case Ratio:
		y.log, y.lo, y.hi = true, min(0.9, max(0.25, low*0.97)), max(1.1, min(4, high*1.03))
		y.ticks = ratioTicks(y.lo, y.hi)
	}
	return y
}

// sizeTicks marks powers of two, with a label for some of them.
func sizeTicks(lo, hi float64) (ticks []tick) {
	first, last := int(math.Ceil(math.Log2(lo)-1e-9)), int(math.Floor(math.Log2(hi)+1e-9))
	every := max(1, (last-first+8)/9)
	for e := first; e <= last; e += every {
		if e < 0 {
			continue
		}
		unit := min(e/10, 6)
		ticks = append(ticks,
			tick{math.Exp2(float64(e)), strconv.Itoa(1<<(e-10*unit)) + []string{"", "K", "M", "G", "T", "P", "E"}[unit]})
	}
	return ticks
}

// timeTicks marks decades of microseconds, in the unit that suits each.
func timeTicks(lo, hi float64) (ticks []tick) {
	for e := int(math.Floor(math.Log10(lo) + 1e-9)); math.Pow10(e) <= hi; e++ {
		d := math.Pow10(e)
		text := fmt.Sprintf("%g µs", d)
		switch {
		case e >= 6:
			text = fmt.Sprintf("%g s", d/1e6)
		case e >= 3:
			text = fmt.Sprintf("%g ms", d/1e3)
		case e < 0:
			text = fmt.Sprintf("%g ns", d*1e3)
		}
		ticks = append(ticks, tick{d, text})
		for k := 2.0; k < 10 && k*d <= hi; k++ {
			ticks = append(ticks, tick{at: k * d})
		}
	}
	return ticks
}

// ratioTicks marks tenths near 1, and fewer further off.
func ratioTicks(lo, hi float64) (ticks []tick) {
	for _, v := range []float64{0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.5, 1.7, 2, 2.5, 3, 4} {
		if lo <= v && v <= hi {
			ticks = append(ticks, tick{v, strconv.FormatFloat(v, 'g', 3, 64)})
		}
	}
	return ticks
}

// evenTicks marks at most eight round numbers from 0.
func evenTicks(hi float64) (ticks []tick) {
	step := math.Pow10(int(math.Floor(math.Log10(hi))) - 1)
	for _, f := range []float64{1, 2, 5, 10, 20, 50} {
		if hi/(step*f) <= 7 {
			step *= f
			break
		}
	}
	for k := 0.0; k*step <= hi; k++ {
		v, _ := strconv.ParseFloat(strconv.FormatFloat(k*step, 'g', 10, 64), 64) // 1 and not 1.0000000000000002
		ticks = append(ticks, tick{v, strconv.FormatFloat(v, 'g', 6, 64)})
	}
	return ticks
}
