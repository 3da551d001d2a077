package command

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/bench/chart"
	"github.com/ringo-go/ringo/internal/cli"
)

// checkPlot refuses a file that cannot be written, or whose name does not end in .svg.
func checkPlot(file string) error {
	if file != "" && !isSVG(file) {
		return cli.Usagef("-plot %s: the name must end in .svg", file)
	}
	return cli.Writable("-plot", file)
}

func isSVG(file string) bool { return strings.EqualFold(filepath.Ext(file), ".svg") }

// plot draws time, bus bandwidth, and time as a multiple of the least, each with a line for every algorithm.
func (r *simReport) plot(file, model string) error {
	if file == "" {
		return nil
	}
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
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		return fmt.Errorf("--plot: %w", err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("--plot: %w", err)
	}
	return nil
}
