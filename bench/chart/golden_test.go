package chart

import (
	"bytes"
	"flag"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write testdata anew")

// Pictures are what they were: look at a new one in a browser before -rewrite.
func TestPicturesAreAsTheyWere(t *testing.T) {
	all := &Figure{Title: "title & more"}
	var lines []Line
	for i := range 5 {
		k := float64(i + 1)
		lines = append(lines, Line{Label: "line <" + string(rune('a'+i)) + ">", Color: i, Strong: i == 1,
			X: []float64{1, 900, 64 << 10}, Y: []float64{0.4 * k, 1.1 * k, 0.2 / k}})
	}
	lines[2].Y, lines[3].X, lines[3].Y = []float64{5, 0.1, 9}, []float64{4096}, []float64{1.5}
	all.Rows = []Row{{Title: "row", Panels: []Panel{{Title: "time", Scale: Time, Lines: lines},
		{Title: "ratio", Scale: Ratio, Lines: lines}}},
		{Title: "another", Panels: []Panel{{Title: "amount", Scale: Amount, Lines: lines[:2]}}}}
	for file, write := range map[string]func(io.Writer) error{
		"rows.svg": all.Write,
		"timeline.svg": (&Timeline{
			Title: "tracks", From: 3, To: 2503, Legend: []Key{{0, "step"}, {1, "waits"}, {2, "room"}},
			Tracks: []Track{{Name: "rank 0", Bars: []Bar{{From: 3, To: 1000, Label: "one"},
				{From: 900, To: 990, Color: 1, Thin: true, Label: "narrow"}, {From: 1200, To: 2600, Color: 2}}}, {Name: "rank 10"}},
		}).Write,
	} {
		var b bytes.Buffer
		require.NoError(t, write(&b))
		if file = "testdata/" + file; *rewrite {
			require.NoError(t, os.WriteFile(file, b.Bytes(), 0o644))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(want), b.String(), file)
	}
}
