package sim

import (
	"context"

	"github.com/ringo-go/ringo/sched"
)

// Parts divide the time of a collective: the seconds of its critical path that each
// property of the machine takes.
type Parts struct {
	Latency  float64
	Overhead float64
	Wire     float64 // bytes through ports of ranks
	Shared   float64 // bytes through the card or memory that ranks of a node share
	Compute  float64 // combining and copying
}

// Decompose runs a schedule ten times to find its Parts. The time of a run is
// homogeneous of degree one in the costs of the model: twice as slow in
// everything takes twice as long. So by Euler's theorem it is the sum of each
// cost times the derivative to it, and that derivative is how often the critical
// path pays the cost. Where two paths are equally long the Parts are of both, and
// their sum differs a little from the time. It ends when ctx does;
// Options are those of each run.
func Decompose(ctx context.Context, s sched.Schedule, m Model, bytes int64, o Options) (Parts, error) {
	var parts Parts
	for _, p := range []struct {
		part  *float64
		scale func(m *Model, f float64)
	}{
		{&parts.Latency, func(m *Model, f float64) { m.Intra.Latency *= f; m.Inter.Latency *= f }},
		{&parts.Overhead, func(m *Model, f float64) { m.Intra.Overhead *= f; m.Inter.Overhead *= f }},
		{&parts.Wire, func(m *Model, f float64) { m.Intra.Bandwidth /= f; m.Inter.Bandwidth /= f }},
		{&parts.Shared, func(m *Model, f float64) { m.Intra.Shared /= f; m.Inter.Shared /= f }},
		{&parts.Compute, func(m *Model, f float64) { m.Reduce *= f; m.Copy *= f }},
	} {
		const h = 1.0 / 1024
		var times [2]float64
		for i, f := range []float64{1 - h, 1 + h} {
			scaled := m
			p.scale(&scaled, f)
			res, err := Run(ctx, s, scaled, bytes, o)
			if err != nil {
				return Parts{}, err
			}
			times[i] = res.Time
		}
		*p.part = (times[1] - times[0]) / (2 * h)
	}
	return parts, nil
}
