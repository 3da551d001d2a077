package trace_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/trace"
)

// The clock of traces is the Unix time, and goes on.
func TestNow(t *testing.T) {
	before := trace.Now()
	require.InDelta(t, float64(time.Now().UnixNano()), float64(before), float64(tier.Patience))
	for trace.Now() == before { // a clock with steps
	}
	require.Greater(t, trace.Now(), before)
}
