package command

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bench/chart"
	"github.com/ringo-go/ringo/trace"
)

// A wait for a message and a wait for room are told apart, for rank 0 too.
func TestBarsOfSteps(t *testing.T) {
	d := &drawing{tracks: map[trackKey]*chart.Track{}}
	d.add(&trace.Call{Rank: 1, Steps: []trace.Span{
		{What: trace.Step, Step: 3, Start: 1000, End: 2000},
		{What: trace.Wait, Recv: 0, Send: -1, Start: 1000, End: 1500},
		{What: trace.Wait, Recv: -1, Send: 0, Start: 1500, End: 2000},
	}})
	require.Equal(t, &chart.Track{Name: "rank 1", Bars: []chart.Bar{
		{From: 1, To: 2, Color: stepColor, Label: "3"},
		{From: 1, To: 1.5, Color: waitColor, Thin: true, Label: "rank 0"},
		{From: 1.5, To: 2, Color: roomColor, Thin: true, Label: "rank 0"},
	}}, d.tracks[trackKey{rank: 1}])
}
