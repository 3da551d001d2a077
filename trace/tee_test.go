package trace_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/trace"
)

// Each of several observers has a Call.Own of its own, and all see the steps.
func TestTee(t *testing.T) {
	require.Nil(t, trace.Tee(nil, nil))
	a, b := trace.NewRecorder(4, 100), trace.NewRecorder(4, 3)
	require.Same(t, a, trace.Tee(nil, a))
	both, c := trace.Tee(a, nil, trace.Labels(t.Context()), b), newCall(0)
	for n := range uint32(11) {
		carryOut(both, c, n+1)
	}
	require.Zero(t, testing.AllocsPerRun(20, func() { carryOut(both, c, 12) }))
	for _, r := range []*trace.Recorder{a, b} {
		calls := r.Trace().Calls
		require.NotEmpty(t, calls)
		for _, c := range calls {
			require.Equal(t, 5, len(c.Steps)+c.Lost)
			require.NoError(t, c.Check())
		}
	}
	require.Zero(t, a.Trace().Calls[0].Lost)
}

func TestLog(t *testing.T) {
	var b strings.Builder
	o := trace.Log(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug})))
	c := newCall(0)
	carryOut(o, c, 17)
	require.Contains(t, b.String(), `msg="AllReduce #17 ring 4096 B ended" subsys=CALL took=`)
	c.Waits[0], c.Waits[1], c.Start = 12*time.Microsecond, 3100*time.Microsecond, c.End-5e6
	o.End(c)
	require.Contains(t, b.String(), `took=5ms "waited for"="rank 1 3.1ms, rank 0 12µs"`)
}
