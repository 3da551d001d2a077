package internal_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/process"
)

// Each Process has a value of its own, which is made once.
func TestProcess(t *testing.T) {
	made := 0
	r := process.Registry[map[string]int]{Fresh: func() *map[string]int { made++; return &map[string]int{} }}
	alone := new(process.Process)
	ctx := process.With(t.Context(), alone)
	(*r.In(process.Of(ctx)))["a"]++
	require.Empty(t, *r.In(process.Of(t.Context())))
	require.Equal(t, map[string]int{"a": 1}, *r.In(alone))
	require.Same(t, r.In(nil), r.In(process.Of(t.Context())))
	require.Equal(t, 2, made)
}

// Of a shared thing there is one at a time for each key, while it is used.
func TestShared(t *testing.T) {
	var p process.Process
	var made, open atomic.Int32
	s := process.Shared[string, *int]{End: func(*int) error { open.Add(-1); return nil }}
	_, err := s.Open(&p, "b", func() (*int, error) { return nil, errors.New("no") })
	require.EqualError(t, err, "no")
	require.Zero(t, s.Len(&p))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				_, err := s.Open(&p, "a", func() (*int, error) {
					made.Add(1)
					if open.Add(1) != 1 {
						return nil, errors.New("another one is there")
					}
					return new(int), nil
				})
				if err != nil {
					t.Error(err)
					return
				}
				s.Leave(&p, "a")
			}
		})
	}
	all.Wait()
	require.Zero(t, s.Len(&p))
	require.Zero(t, open.Load())
	require.Positive(t, made.Load())
}
