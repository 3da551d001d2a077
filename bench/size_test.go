package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// ParseSize takes the sizes that nccl-tests takes, and refuses others with a remedy.
func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "8": 8, "8b": 8, "1K": 1024, "64k": 64 << 10, "1.5M": 3 << 19, "2G": 2 << 30, "1T": 1 << 40,
		"4KB": 4096, "4KiB": 4096, " 16M ": 16 << 20, ".5K": 512,
	} {
		got, err := ParseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "K", "-1", "1.5", "8X", "1e3", "0x10", "8KK", "Inf", "NaN", "99999999T", "1 K", "+1",
		"8i"} {
		_, err := ParseSize(text)
		require.ErrorContains(t, err, "write for example", text)
	}
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 8: "8", 1024: "1K", 1500: "1500", 3 << 19: "1536K", 64 << 20: "64M",
		1 << 50: "1024T"} {
		require.Equal(t, want, FormatSize(n))
	}
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"8", "1.5M", "4KiB", "2G", "B", "iB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseSize(s)
		if err != nil {
			return
		}
		require.GreaterOrEqual(t, n, int64(0))
		again, err := ParseSize(FormatSize(n))
		require.NoError(t, err)
		require.Equal(t, n, again)
	})
}

func TestSweep(t *testing.T) {
	for name, c := range map[string]struct {
		sweep Sweep
		want  []int64
		err   string
	}{
		"factor":       {Sweep{Min: 8, Max: 130, Factor: 4}, []int64{8, 32, 128, 130}, ""},
		"from zero":    {Sweep{Min: 0, Max: 65536, Factor: 16}, []int64{0, 1, 16, 256, 4096, 65536}, ""},
		"step":         {Sweep{Min: 4, Max: 20, Step: 7}, []int64{4, 11, 18, 20}, ""},
		"one":          {Sweep{Min: 64, Max: 64}, []int64{64}, ""},
		"slow factor":  {Sweep{Min: 2, Max: 5, Factor: 1.1}, []int64{2, 3, 4, 5}, ""},
		"backwards":    {Sweep{Min: 9, Max: 8, Factor: 2}, nil, "-b 9 is more than -e 8"},
		"no way":       {Sweep{Min: 8, Max: 16}, nil, "give a step"},
		"factor one":   {Sweep{Min: 8, Max: 16, Factor: 1}, nil, "above 1"},
		"too many":     {Sweep{Min: 0, Max: 1 << 20, Step: 1}, nil, "more than 10000 rows"},
		"largest size": {Sweep{Min: maxSize, Max: maxSize, Factor: 2}, []int64{maxSize}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.sweep.Sizes()
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}
