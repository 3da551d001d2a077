package main

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringo-go/ringo"
)

// Ranks that come and go do not change the result.
func TestElastic(t *testing.T) {
	defer goleak.VerifyNone(t)
	cfg := ringo.Config{Log: slog.New(slog.DiscardHandler)}
	calm := &job{ranks: 5, steps: 200, cfg: cfg}
	want, err := calm.run(t.Context())
	require.NoError(t, err)
	wild := &job{ranks: 5, steps: 200, losses: 10, cfg: cfg}
	got, err := wild.run(t.Context())
	require.NoError(t, err)
	require.InEpsilon(t, want, got, 1e-9)
	require.Equal(t, 10, wild.lost)
	require.Positive(t, wild.gained)
	t.Logf("slowest recovery %v", wild.slow)
}
