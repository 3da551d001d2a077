package chart

import (
	"bytes"
	"encoding/xml"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// example is a figure with a panel of each Scale.
func example() *Figure {
	lines := []Line{
		{Label: "ringo", Strong: true, X: []float64{8, 1024, 1 << 20}, Y: []float64{0.4, 2, 100}},
		{Label: "a & b", Color: 1, X: []float64{8, 1024, 1 << 20}, Y: []float64{100, 2.2, 90}},
	}
	ratio := []Line{lines[0], lines[1]}
	ratio[0].Y, ratio[1].Y = []float64{1, 1, 1}, []float64{250, 1.1, 0.9}
	return &Figure{Title: "t", Rows: []Row{{Title: "row", Panels: []Panel{
		{Title: "time", Scale: Time, Lines: lines}, {Title: "amount", Scale: Amount, Lines: lines},
		{Title: "ratio", Scale: Ratio, Lines: ratio},
	}}}}
}

// An SVG is XML whose text is anchored, in fonts that viewers have.
func TestSVG(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, example().Write(&b))
	require.NoError(t, xml.Unmarshal(b.Bytes(), new(struct{})))
	svg := b.String()
	require.Equal(t, strings.Count(svg, "<text "), strings.Count(svg, "text-anchor="))
	require.Contains(t, svg, "Helvetica, Arial, ")
	require.Contains(t, svg, "a &amp; b")
	require.Equal(t, 1, strings.Count(svg, ">ringo<"), "a legend for the whole row")
	require.NotContains(t, svg, "NaN")
}

// Ten per cent can be seen, and values far off are at the edge.
func TestRatioAxis(t *testing.T) {
	p := example().Rows[0].Panels[2]
	y := p.values()
	require.Equal(t, 4.0, y.hi)
	require.Equal(t, 0.873, y.lo)
	require.Greater(t, plotHeight*(y.position(1.1)-y.position(1)), 15.0)
	p.Lines[1].Y = []float64{1.01, 1.02, 0.99}
	y = p.values()
	require.Equal(t, 1.1, y.hi)
	require.Equal(t, 0.9, y.lo)
	require.Contains(t, y.ticks, tick{1, "1"})

	x := example().Rows[0].sizes()
	from, to, ok := clip(point{8, 1}, point{1 << 20, 1.2}, x, y)
	require.True(t, ok)
	require.Equal(t, point{8, 1}, from)
	require.InDelta(t, 1.1, to.y, 1e-9)
	require.InEpsilon(t, math.Log(1.1)/math.Log(1.2), x.position(to.x), 1e-9)
	_, _, ok = clip(point{8, 1.2}, point{1 << 20, 1.3}, x, y)
	require.False(t, ok)
}

func TestTicks(t *testing.T) {
	labels := func(ticks []tick) (list []string) {
		for _, t := range ticks {
			if t.label != "" {
				list = append(list, t.label)
			}
		}
		return list
	}
	require.Equal(t, []string{"8", "32", "128", "512", "2K", "8K", "32K", "128K", "512K"}, labels(sizeTicks(8, 1<<20)))
	require.Equal(t, []string{"100 ns", "1 µs", "10 µs", "100 µs", "1 ms"}, labels(timeTicks(0.1, 2000)))
	require.Equal(t, []string{"0", "50", "100", "150", "200", "250", "300", "350"}, labels(evenTicks(0, 350)))
	require.Equal(t, []string{"0.9", "0.95", "1", "1.05", "1.1"}, labels(evenTicks(0.9, 1.1)))
	require.Equal(t, []string{"0.9", "1", "1.1", "1.2"}, labels(ratioTicks(0.88, 1.25)))
}

// A value that has no place on an axis is refused.
func TestCannotBeDrawn(t *testing.T) {
	for _, l := range []Line{{}, {X: []float64{0}, Y: []float64{1}}, {X: []float64{8}, Y: []float64{0}},
		{X: []float64{8}, Y: []float64{math.Inf(1)}}, {X: []float64{8}, Y: []float64{math.NaN()}}} {
		f := Figure{Rows: []Row{{Title: "row", Panels: []Panel{{Title: "time", Scale: Time, Lines: []Line{l}}}}}}
		require.ErrorContains(t, f.Write(new(bytes.Buffer)), "chart: row, time: ")
	}
}

// value is the inverse of position.
func TestAxisThereAndBack(t *testing.T) {
	for _, a := range []axis{{lo: 2, hi: 10}, {lo: 2, hi: 2048, log: true}} {
		for _, p := range []float64{0, 0.25, 1} {
			require.InDelta(t, p, a.position(a.value(p)), 1e-12)
		}
	}
	linear := axis{lo: 2, hi: 10}
	require.Equal(t, 4.0, linear.value(0.25))
}
