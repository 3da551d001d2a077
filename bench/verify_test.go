package bench

import (
	"testing"

	"github.com/ringo-go/ringo"
	"github.com/stretchr/testify/require"
)

// patternOf is a pattern of n moved elements of size bytes.
func patternOf(n, size int) pattern {
	d := newData(ringo.Float32, ringo.RedOp{}, true, 1, n, 9)
	d.el.size = size
	t := pattern{make([]byte, min(n, period)*size), size}
	d.contribution(t.bytes, 0)
	return t
}

func TestVerificationSeesEveryBit(t *testing.T) {
	want := patternOf(50, 4)
	got := make([]byte, 200)
	want.fill(got, 0)
	require.Zero(t, want.wrong(got, 0))
	for bit := range 8 * len(got) {
		got[bit/8] ^= 1 << (bit % 8)
		require.Equal(t, int64(1), want.wrong(got, 0), "bit %d", bit)
		got[bit/8] ^= 1 << (bit % 8)
	}
}

func TestPoisonIsAllWrong(t *testing.T) {
	for _, size := range []int{1, 2, 4, 8} {
		want := patternOf(1000, size)
		got := make([]byte, 900*size)
		want.poison(got, 100)
		require.Equal(t, int64(900), want.wrong(got, 100))
	}
}

func TestTableWrapsAfterPeriod(t *testing.T) {
	want := patternOf(3*period, 2)
	n := 2*period + 77
	got := make([]byte, n*2)
	want.fill(got, period-5)
	require.Equal(t, want.bytes[len(want.bytes)-10:], got[:10], "begins before the wrap")
	require.Equal(t, want.bytes[:100], got[10:110], "goes on after it")
	require.Zero(t, want.wrong(got, period-5))
	require.Zero(t, want.wrong(got, 3*period-5), "is periodic")
	got[len(got)-1]++
	require.Equal(t, int64(1), want.wrong(got, period-5))
}

// Collectives that are wrong have data at wrong places: blocks swapped, shifted by
// an element or by a chunk.
func TestWrongPlaceIsSeen(t *testing.T) {
	want := patternOf(1<<20, 4)
	got := make([]byte, 4<<20)
	for _, shift := range []int{1, 16, 1024, 4096, 1 << 15, 1 << 16, 1 << 17, 1 << 18, 3 << 16} {
		want.fill(got, shift)
		require.Greater(t, want.wrong(got, 0), int64(1<<20-100), "shifted by %d", shift)
	}
}

func TestBufferFences(t *testing.T) {
	b := newBuffer(100)
	b.guard(40)
	mem := b.part(0, 40)
	require.Len(t, mem, 40)
	require.Equal(t, 40, cap(mem))
	for i := range mem {
		mem[i] = 0xff
	}
	require.Zero(t, b.trespassed(40))
	b.all[fence-1]++
	b.all[fence+40]++
	require.Equal(t, int64(2), b.trespassed(40))
}

// A part has a length in its own buffer alone.
func TestLengthOfParts(t *testing.T) {
	a, b := newBuffer(100), newBuffer(100)
	require.Equal(t, 100, a.capacity())
	require.Equal(t, 30, a.length(a.part(20, 10)))
	require.Equal(t, 100, a.length(a.part(0, 100)))
	require.Zero(t, a.length(b.part(20, 10)))
	require.Zero(t, a.length(a.part(20, 0)))
	require.Zero(t, a.length(nil))
	require.Equal(t, 10, cap(a.part(20, 10)), "what is appended to it is elsewhere")
}
