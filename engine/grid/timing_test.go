package grid

import (
	"math"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
)

// timeGraphs is the time of an operation in graphs that hold reps of it, in µs, on
// the rank that began last: the others began to wait earlier. prepare is called
// for each rank, with its context current, and gives what queues the operation.
func (r *rig) timeGraphs(reps int, prepare func(i int, m *member) func() error) float64 {
	t, d := r.t, r.d
	events := make([][2]cuda.Event, len(r.ranks))
	execs := make([]cuda.GraphExec, len(r.ranks))
	for i, m := range r.ranks {
		r.with(m, func() (err error) {
			run := prepare(i, m)
			for k := range events[i] {
				events[i][k], err = d.EventCreate(cuda.EventDefault)
				require.NoError(t, err)
			}
			require.NoError(t, d.StreamBeginCapture(m.stream, cuda.CaptureThreadLocal))
			for range reps {
				require.NoError(t, run())
			}
			g, err := d.StreamEndCapture(m.stream)
			require.NoError(t, err)
			execs[i], err = d.GraphInstantiate(g, 0)
			require.NoError(t, err)
			return d.GraphDestroy(g)
		})
	}
	best := math.Inf(1)
	for turn := range 4 {
		for i, m := range r.ranks {
			r.with(m, func() error {
				require.NoError(t, d.EventRecord(events[i][0], m.stream))
				require.NoError(t, d.GraphLaunch(execs[i], m.stream))
				return d.EventRecord(events[i][1], m.stream)
			})
		}
		r.sync()
		for i, m := range r.ranks {
			r.with(m, func() error {
				ms, err := d.EventElapsedTime(events[i][0], events[i][1])
				if turn > 0 {
					best = min(best, float64(ms)*1e3/float64(reps))
				}
				return err
			})
		}
	}
	for i, m := range r.ranks {
		require.NoError(t, m.engine.Control().Fault())
		r.with(m, func() error {
			require.NoError(t, d.GraphExecDestroy(execs[i]))
			for _, e := range events[i] {
				require.NoError(t, d.EventDestroy(e))
			}
			return nil
		})
	}
	return best
}
