package cudaemu_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/decision"
	"github.com/ringo-go/ringo/internal/test/must"
)

var (
	one = decision.Warp{Block: [3]int{1, 0, 0}}
	two = decision.Warp{Device: 1, Launch: 3, Warp: 2}
)

// What is written is read again, up to a line that was cut off.
func TestDecisionsFile(t *testing.T) {
	list := []decision.Decision{
		{Kind: decision.Switch, Warp: one, At: 7, Round: 2, To: two},
		{Kind: decision.Hold, Warp: two, At: 32, Late: []decision.Late{{Units: 3, Turns: 9}}},
		{Kind: decision.Start, At: 4, Wait: 2},
	}
	var b bytes.Buffer
	require.NoError(t, decision.Write(&b, list))
	b.WriteString(`{"kind":"swi`)
	got := must.Get(decision.Read(bytes.NewReader(b.Bytes())))
	require.Equal(t, list, got)
	require.Error(t, must.Err(decision.Read(bytes.NewReader([]byte("decisions\n")))))
}

func TestFollowDecisions(t *testing.T) {
	var none *decision.Book
	require.False(t, none.Records() || none.Follows())
	b := decision.Follow([]decision.Decision{
		{Kind: decision.Switch, Warp: one, At: 9, To: two},
		{Kind: decision.Switch, Warp: one, At: 5, Round: 1, To: two},
		{Kind: decision.Part, Warp: one, At: 20, Until: 26},
		{Kind: decision.Switch, Warp: one, At: 9, To: one},
		{Kind: decision.Hold, Warp: one, At: 3},
	}, nil)
	require.True(t, b.Follows())
	for at, want := range map[uint64]uint64{0: 5, 4: 1, 5: 4, 9: 11, 20: 6, 26: 32} {
		require.Equal(t, want, b.Next(one, at, 32), "from %d on", at)
	}
	require.EqualValues(t, 32, b.Next(two, 0, 32))
	_, ok := b.Take(decision.Switch, one, 5, 0)
	require.False(t, ok, "it has not polled so often")
	_, ok = b.Take(decision.Switch, one, 5, 3)
	require.True(t, ok)
	first, _ := b.Take(decision.Switch, one, 9, 0)
	next, _ := b.Take(decision.Switch, one, 9, 0)
	require.Equal(t, []decision.Warp{two, one}, []decision.Warp{first.To, next.To}, "in the order in which they were made")
	require.False(t, b.Has(decision.Switch, one, 9))
	require.True(t, b.Has(decision.Hold, one, 3))
}
