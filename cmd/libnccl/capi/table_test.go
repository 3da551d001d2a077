package capi

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
)

func TestTable(t *testing.T) {
	x := Table[int]{What: "thing"}
	_, err := x.Get(firstHandle)
	require.ErrorIs(t, err, ringo.ErrInvalid)
	given := map[uintptr]int{}
	past := map[uintptr]bool{}
	for i := range 1000 { // one in ten stays
		h := x.Add(i)
		require.Greater(t, h, uintptr(firstHandle))
		require.False(t, past[h], "given again")
		past[h] = true
		if given[h] = i; i%10 > 0 {
			got, err := x.Take(h)
			require.NoError(t, err)
			require.Equal(t, i, got)
			delete(given, h)
		}
		for h, v := range given {
			got, err := x.Get(h)
			require.NoError(t, err)
			require.Equal(t, v, got)
			_, err = x.Get(h + 1)
			require.Error(t, err)
		}
	}
	for h := range past {
		if _, stays := given[h]; !stays {
			_, err := x.Get(h)
			require.ErrorContains(t, err, "is no thing")
			_, err = x.Take(h)
			require.Error(t, err)
		}
	}
	require.Len(t, x.all(), 100)
	x.drop(func(v int) bool { return v >= 500 })
	require.Len(t, x.all(), 50)
	_, err = x.Get(0)
	require.ErrorContains(t, err, "the thing is null")
}

// TestTableConcurrently looks up values that stay while other values come and go.
func TestTableConcurrently(t *testing.T) {
	var x Table[int]
	stays := x.Add(-1)
	var threads sync.WaitGroup
	for i := range 4 {
		threads.Go(func() {
			for k := range 500 {
				mine := []uintptr{x.Add(i), x.Add(i)}
				for _, h := range mine {
					v, err := x.Get(h)
					other, missing := x.Get(stays)
					if v != i || err != nil || other != -1 || missing != nil {
						t.Error(k, v, err, other, missing)
					}
				}
				if k%3 > 0 {
					x.Take(mine[0])
					x.Take(mine[1])
				}
			}
		})
	}
	threads.Wait()
}
