package trace_test

import (
	"bytes"
	"runtime/pprof"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/trace"
)

// A goroutine has the labels of the call that it carries out, and then its own again.
func TestLabels(t *testing.T) {
	ctx := pprof.WithLabels(t.Context(), pprof.Labels("mine", "kept"))
	pprof.SetGoroutineLabels(ctx)
	defer pprof.SetGoroutineLabels(t.Context())
	profile := func() string {
		var b bytes.Buffer
		require.NoError(t, pprof.Lookup("goroutine").WriteTo(&b, 1))
		return b.String()
	}
	o, c := trace.Labels(ctx), newCall(1)
	c.Reset()
	c.Kind, c.Algo = "AllReduce", "ring"
	o.Begin(c)
	require.Contains(t, profile(), `{"algorithm":"ring", "mine":"kept", "rank":"1", "ringo":"AllReduce"}`)
	o.End(c)
	require.NotContains(t, profile(), "ringo\":")
	require.Contains(t, profile(), `{"mine":"kept"}`)
	require.Zero(t, testing.AllocsPerRun(20, func() {
		o.Begin(c)
		o.End(c)
	}))
}
