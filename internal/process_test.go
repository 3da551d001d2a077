package internal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/process"
)

// Each Process has a value of its own, which is made once.
func TestProcess(t *testing.T) {
	made := 0
	r := process.NewRegistry(func() *map[string]int { made++; return &map[string]int{} })
	alone := new(process.Process)
	ctx := process.With(t.Context(), alone)
	(*r.In(process.Of(ctx)))["a"]++
	require.Empty(t, *r.In(process.Of(t.Context())))
	require.Equal(t, map[string]int{"a": 1}, *r.In(alone))
	require.Same(t, r.In(nil), r.In(process.Of(t.Context())))
	require.Equal(t, 2, made)
}
