package internal_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/setting"
)

// Yes and no are read in each of their words, in any case.
func TestOn(t *testing.T) {
	for value, want := range map[string]bool{"1": true, "true": true, "Yes": true, "on": true, "0": false, "false": false,
		"NO": false, "off": false} {
		on, ok := setting.On(value)
		require.Equal(t, []bool{want, true}, []bool{on, ok}, value)
	}
	_, ok := setting.On("perhaps")
	require.False(t, ok)
}

func TestTLS(t *testing.T) {
	for word, want := range map[string][]bool{"": {false, true}, "1": {true, true}, "off": {false, false}} {
		without, err := setting.TLS(word, "", "")
		require.NoError(t, err)
		with, err := setting.TLS(word, "", "ca.pem")
		require.NoError(t, err)
		require.Equal(t, want, []bool{without, with}, word)
	}
	_, err := setting.TLS("perhaps")
	require.ErrorContains(t, err, `RINGO_TLS="perhaps": want 1, true`)
}

func TestNumberOfNCCL(t *testing.T) {
	for value, want := range map[string]int{
		"12": 12, "0x10": 16, "0X1f": 31, "010": 8, "08": 0, " 8": 8, "\t+7": 7, "-1": -1, "4M": 4, "16 blocks": 16, "": 0,
		"word": 0, "0x": 0, "-": 0,
		"5\x11": 5, "99999999999999999999": 0,
	} {
		n, ok := setting.NumberOfNCCL(value)
		require.Equal(t, want, n, "%q", value)
		require.Equal(t, !slices.Contains([]string{"", "word", "-", "99999999999999999999"}, value), ok, "%q", value)
	}
}

func TestLevelOfNCCL(t *testing.T) {
	for value, want := range map[string]string{
		"LOC": "LOC", "pix": "PIX", "NVL": "NVL", "SYS": "SYS", "0": "LOC", "1": "PIX", "2": "PXB", "0x3": "PHB", "4": "SYS",
		"9": "SYS", "3rd": "PHB",
		"99999999999999999999": "SYS", "": "", "NEAR": "", "-1": "", " 1": "", "DIS": "",
	} {
		level, ok := setting.LevelOfNCCL(value)
		require.Equal(t, want, level, "%q", value)
		require.Equal(t, want != "", ok, "%q", value)
	}
}

func FuzzNumberOfNCCL(f *testing.F) {
	f.Add("0x1f")
	f.Add(" -012z")
	f.Fuzz(func(t *testing.T, v string) {
		n, ok := setting.NumberOfNCCL(v)
		again, still := setting.NumberOfNCCL(" " + v)
		require.Equal(t, []any{n, ok}, []any{again, still})
		again, ok = setting.NumberOfNCCL(strconv.Itoa(n))
		require.True(t, ok)
		require.Equal(t, n, again)
	})
}
