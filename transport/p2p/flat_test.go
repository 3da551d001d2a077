package p2p_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/transport/p2p"
)

// TestFlat lays out segments that begin in different pieces of virtual memory.
func TestFlat(t *testing.T) {
	d := gputest.Driver(t, gputest.Devices(2))
	a, b := newUser(t, d, 0, 0, "one"), newUser(t, d, 1, 1, "one")
	x, y := a.mapped(2, true), b.mapped(3, true)
	const within, n = 4096, 3*pieceBytes - 8192
	s0, o0 := a.segment(x+within, n)
	s1, o1 := b.segment(y+within+pieceBytes, n) // begins in the second piece
	offers := []p2p.SegmentOffer{*o0, *o1}
	for _, s := range []*p2p.Segment{s0, s1} {
		f, err := s.Lay(offers)
		require.NoError(t, err)
		require.Zero(t, f.Stride%p2p.FlatUnit)
		u := map[*p2p.Segment]*user{s0: a, s1: b}[s]
		a.write(x+within, "first of 0")
		b.write(y+within+pieceBytes+n-9, "last of 1"[:9])
		require.Equal(t, "first of 0", u.read(f.Base, 10))
		require.Equal(t, "last of 1", u.read(f.Base+f.Stride+n-9, 9))
		require.NoError(t, f.Close())
	}
}

func TestFlatBad(t *testing.T) {
	d := gputest.Driver(t, gputest.Devices(2))
	a, b := newUser(t, d, 0, 0, "one"), newUser(t, d, 1, 1, "one")
	s, own := a.segment(a.mapped(1, true), 4096)
	_, plain := b.segment(b.alloc(4096), 4096)
	_, aside := b.segment(b.mapped(1, true)+8192, 4096)
	for want, o := range map[string]*p2p.SegmentOffer{
		"rank 1's is not of the virtual-memory API": plain,
		"and rank 1's at 8192":                      aside,
	} {
		_, err := s.Lay([]p2p.SegmentOffer{*own, *o})
		require.ErrorContains(t, err, want)
	}
	if runtime.GOOS == "linux" { // a peer of another process that is gone: what was mapped is given back
		_, gone := b.segment(b.mapped(1, true), 4096)
		gone.Process = "another"
		require.NoError(t, s.Settle())
		gone.Export.Socket += "gone"
		_, err := s.Lay([]p2p.SegmentOffer{*own, *gone})
		require.ErrorContains(t, err, "memory of rank 1: ")
	}
}
