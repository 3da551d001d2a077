package call

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringo-go/ringo/kernels"
)

// anySign draws a sign that a call may have.
var anySign = rapid.Custom(func(t *rapid.T) Sign {
	return Sign{
		Seq:   rapid.Uint32().Draw(t, "seq"),
		Kind:  Kind(rapid.IntRange(0, int(Kinds)-1).Draw(t, "kind")),
		Type:  rapid.SampledFrom(kernels.Types()).Draw(t, "type"),
		Op:    kernels.Kind(rapid.IntRange(0, int(kernels.KindUser)).Draw(t, "op")),
		Algo:  rapid.SampledFrom(append(algos(), ByRank)).Draw(t, "algo"),
		Where: uint16(rapid.IntRange(0, MaxWhere).Draw(t, "where")),
		Count: rapid.OneOf(rapid.IntRange(0, MaxCount-1), rapid.Just(MaxCount-1)).Draw(t, "count"),
		Root:  rapid.IntRange(-1, 1<<17-1).Draw(t, "root"),
	}
})

func algos() (all []Algo) {
	for a := range Algos {
		all = append(all, a)
	}
	return all
}

// A sign survives its stamp, whatever is in it.
func TestSignRoundTrip(t *testing.T) {
	for _, s := range []Sign{
		{}, {Seq: 1<<32 - 1, Kind: AlltoAllv, Type: kernels.Float8E5M2, Op: 9, Algo: Algos - 1, Where: MaxWhere, Count: MaxCount - 1, Root: 1<<17 - 1},
		{Kind: Send, Count: 5, Root: -1}, {Seq: 7, Kind: Reduce, Type: kernels.Float64, Count: 0, Root: 0},
	} {
		require.Equal(t, s, ReadSign(s.Stamp()), s)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := anySign.Draw(t, "sign")
		require.Equal(t, s, ReadSign(s.Stamp()))
	})
}
