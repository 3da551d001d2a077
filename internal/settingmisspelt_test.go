package internal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/setting"
)

// A name that is nearly a known one is said, once. Others may be another program's, and a known one is right.
func TestMisspelt(t *testing.T) {
	known := []string{"RINGO_NET", "NCCL_NET", "RINGO_SLOTS", "RINGO_SLOT_BYTES", "RINGO_TRANSPORT", "RINGO_RANK"}
	for name, want := range map[string]string{
		"RINGO_TRANPORT":    "RINGO_TRANSPORT",
		"RINGO_TRNASPORT":   "RINGO_TRANSPORT",
		"RINGO_TRANSPORTS":  "RINGO_TRANSPORT",
		"RINGO_SLOT":        "RINGO_SLOTS",
		"RINGO_SLOTS_BYTES": "RINGO_SLOT_BYTES",
		"RINGO_NETT":        "RINGO_NET",
		"RINGO_TEST":        "", // of four letters two are others
		"RINGO_COLOUR":      "",
		"RINGO_SLOTS":       "",
		"NCCL_NETT":         "", // NCCL's own affair
		"RINGO_":            "",
	} {
		e := setting.Environment{Get: func(string) string { return "1" }}
		e.Misspelt(known, []string{"HOME=/", name + "=1", "no equals sign"})
		require.NoError(t, e.Err)
		if want == "" {
			require.Empty(t, e.Odd, name)
		} else {
			require.Equal(t, []string{name + " has no effect; is " + want + " meant?"}, e.Odd)
		}
	}
	e := setting.Environment{Get: func(string) string { return "" }}
	e.Misspelt(known, []string{"RINGO_SLOT=1"})
	require.Empty(t, e.Odd, "the environment that counts does not have it")
}

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "abd", 1}, {"abc", "bc", 1}, {"ab", "ba", 1},
		{"kitten", "sitting", 3}, {"", "ring", 4}, {"rnig", "ring", 1}} {
		require.Equal(t, test.want, setting.Distance(test.a, test.b), test)
	}
}
