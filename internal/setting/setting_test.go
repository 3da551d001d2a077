package setting

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOn(t *testing.T) {
	for value, want := range map[string]bool{"1": true, "true": true, "Yes": true, "on": true, "0": false, "false": false, "NO": false, "off": false} {
		on, ok := On(value)
		require.Equal(t, []bool{want, true}, []bool{on, ok}, value)
	}
	_, ok := On("perhaps")
	require.False(t, ok)
}

func TestNumberOfNCCL(t *testing.T) {
	for value, want := range map[string]int{
		"12": 12, "0x10": 16, "0X1f": 31, "010": 8, "08": 0, " 8": 8, "\t+7": 7, "-1": -1, "4M": 4, "16 blocks": 16, "": 0, "word": 0, "0x": 0, "-": 0,
		"5\x11": 5, "99999999999999999999": 0,
	} {
		require.Equal(t, want, NumberOfNCCL(value), "%q", value)
	}
}

func FuzzNumberOfNCCL(f *testing.F) {
	f.Add("0x1f")
	f.Add(" -012z")
	f.Fuzz(func(t *testing.T, v string) {
		n := NumberOfNCCL(v)
		require.Equal(t, n, NumberOfNCCL(" "+v))
		require.Equal(t, n, NumberOfNCCL(strconv.Itoa(n)))
	})
}
