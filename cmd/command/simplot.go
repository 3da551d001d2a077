package command

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/ringo-go/ringo/bench/chart"
)

// plot draws time, bus bandwidth, and time as a multiple of the least, each with a line for every algorithm.
func (r *simReport) plot(w io.Writer, model string) error {
	rows := slices.SortedStableFunc(slices.Values(r.Rows), func(a, b *simRow) int { return cmp.Compare(a.Size, b.Size) })
	least := map[int64]float64{} // the least time by size, in microseconds
	var algos []string
	for _, row := range rows {
		if t, ok := least[row.Size]; !ok || row.Time < t {
			least[row.Size] = row.Time
		}
		if !slices.Contains(algos, row.Algorithm) {
			algos = append(algos, row.Algorithm)
		}
	}
	panel := func(title string, scale chart.Scale, y func(*simRow) float64) chart.Panel {
		p := chart.Panel{Title: title, Scale: scale}
		for i, a := range algos {
			l := chart.Line{Label: a, Color: i}
			for _, row := range rows {
				if row.Algorithm == a && row.Size > 0 && row.Time > 0 {
					l.X, l.Y = append(l.X, float64(row.Size)), append(l.Y, y(row))
				}
			}
			p.Lines = append(p.Lines, l)
		}
		return p
	}
	where := fmt.Sprintf("%s: %d ranks, %s", r.Collective, r.Ranks, model)
	if r.NodeRanks > 0 && r.NodeRanks < r.Ranks {
		where += fmt.Sprintf(", nodes of %d", r.NodeRanks)
	}
	f := chart.Figure{Rows: []chart.Row{{Title: where + " (modelled)", Panels: []chart.Panel{
		panel("time", chart.Time, func(row *simRow) float64 { return row.Time }),
		panel("bus bandwidth (GB/s)", chart.Amount, func(row *simRow) float64 { return row.BusBW }),
		panel("time, in multiples of the least", chart.Ratio,
			func(row *simRow) float64 { return row.Time / least[row.Size] }),
	}}}}
	return f.Write(w)
}
