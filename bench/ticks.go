package bench

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
)

// sizeTicks marks powers of two, with a label for some of them.
type sizeTicks struct{}

func (sizeTicks) Ticks(lo, hi float64) []plot.Tick {
	first, last := int(math.Ceil(math.Log2(lo)-1e-9)), int(math.Floor(math.Log2(hi)+1e-9))
	every := max(1, (last-first+8)/9)
	var ticks []plot.Tick
	for e := first; e <= last; e++ {
		t := plot.Tick{Value: math.Exp2(float64(e))}
		if (e-first)%every == 0 && e >= 0 {
			t.Label = FormatSize(1 << e)
		}
		ticks = append(ticks, t)
	}
	return ticks
}

// timeTicks marks decades of microseconds, in the unit that suits each.
type timeTicks struct{}

func (timeTicks) Ticks(lo, hi float64) []plot.Tick {
	var ticks []plot.Tick
	for e := int(math.Floor(math.Log10(lo) + 1e-9)); math.Pow10(e) <= hi; e++ {
		d := math.Pow10(e)
		label := fmt.Sprintf("%g µs", d)
		switch {
		case e >= 6:
			label = fmt.Sprintf("%g s", d/1e6)
		case e >= 3:
			label = fmt.Sprintf("%g ms", d/1e3)
		case e < 0:
			label = fmt.Sprintf("%g ns", d*1e3)
		}
		ticks = append(ticks, plot.Tick{Value: d, Label: label})
		for k := 2.0; k < 10 && k*d <= hi; k++ {
			ticks = append(ticks, plot.Tick{Value: k * d})
		}
	}
	return ticks
}

// evenTicks marks about five round numbers from 0.
type evenTicks struct{}

func (evenTicks) Ticks(_, hi float64) []plot.Tick {
	step := math.Pow10(int(math.Floor(math.Log10(hi))) - 1)
	for _, f := range []float64{1, 2, 5, 10, 20, 50} {
		if hi/(step*f) <= 7 {
			step *= f
			break
		}
	}
	var ticks []plot.Tick
	for k := 0; float64(k)*step <= hi; k++ {
		ticks = append(ticks, plot.Tick{Value: float64(k) * step, Label: fmt.Sprintf("%.6g", float64(k)*step)})
	}
	return ticks
}
