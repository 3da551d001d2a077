package ptx

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The last few texts are kept, by the time of their last use, and are the right ones.
func TestRecent(t *testing.T) {
	var r texts
	get := func(n Name) *byte {
		text, err := r.text(n)
		require.NoError(t, err)
		want, err := inflate(n)
		require.NoError(t, err)
		require.Equal(t, want, text)
		return &text[0]
	}
	all := All()[:keptTexts+1]
	first := get(all[0])
	second := get(all[1])
	for _, n := range all[2:keptTexts] {
		get(n)
	}
	require.Same(t, first, get(all[0]))
	get(all[keptTexts])
	require.Len(t, r.list, keptTexts)
	require.Same(t, first, get(all[0]), "it was used since")
	require.NotSame(t, second, get(all[1]), "it was not")
	_, err := r.text(Name{Type: "none"})
	require.Error(t, err)
	require.Len(t, r.list, keptTexts)
}
