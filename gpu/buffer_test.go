package gpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/must"
)

func TestBuffer(t *testing.T) {
	d := must.Get(open(t, 1).Device(0))
	s := must.Get(d.NewStream())
	type pair struct{ A, B float32 }
	a := must.Get(Alloc[pair](d, 100))
	b := must.Get(Alloc[pair](d, 40))
	require.Equal(t, 100, a.Len())
	require.Equal(t, 800, a.Region().Len())
	require.Same(t, d, a.Device())
	src := make([]pair, 100)
	for i := range src {
		src[i] = pair{float32(i), float32(-i)}
	}
	require.NoError(t, a.Upload(s, src))
	require.Error(t, b.Upload(s, src))
	require.Error(t, a.CopyTo(s, b))
	require.NoError(t, a.Slice(30, 70).CopyTo(s, b))
	require.NoError(t, a.Slice(0, 0).CopyTo(s, b))
	got := make([]pair, 40)
	require.NoError(t, b.Download(s, got), "after the copy")
	require.Equal(t, src[30:70], got)
	require.Error(t, b.Download(s, src))
	require.Error(t, a.Slice(0, 1).Free())
	require.Panics(t, func() { a.Slice(0, 101) })
	require.NoError(t, a.Free())
	require.NoError(t, b.Free())
	require.NoError(t, d.DestroyStream(s))

	require.ErrorContains(t, must.Err(Alloc[*int](d, 1)), "holds pointers")
	require.Error(t, must.Err(Alloc[struct{ s string }](d, 1)))
	require.Error(t, must.Err(Alloc[struct{}](d, 1)))
	require.Error(t, must.Err(Alloc[int8](d, -1)))
}
