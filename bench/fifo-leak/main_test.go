package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// The runs of a test are processes of its own binary.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// Both programs end with the right results, with the default and the smallest ring.
func TestBothPrograms(t *testing.T) {
	tier.Long(t)
	args := []string{"-n", "3", "-group", "300"}
	if gputest.OnGPU() {
		args = []string{"-device", "cuda", "-n", "20000"}
	}
	o, err := parse(append(args, "-limit", tier.Soon(time.Minute).String()))
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, all(&o, &out), "%s", &out)
	require.Equal(t, 4, strings.Count(out.String(), "results right"), out.String())
}

// A run that takes longer than the limit is killed, and is a failure that says how far it came.
func TestLimit(t *testing.T) {
	o, err := parse([]string{"-n", "100000", "-program", "leak", "-ring", "default", "-limit", "300ms"})
	require.NoError(t, err)
	var out bytes.Buffer
	require.EqualError(t, all(&o, &out), "1 runs of ringo failed")
	require.Contains(t, out.String(), "STALLED at ")
}

func TestFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-device tpu":         `-device is "tpu", want emu or cuda`,
		"-peer nccl":          "-peer nccl needs real GPUs: give -device cuda",
		"-peer mpi":           `-peer is "mpi", want nccl or nothing`,
		"-program leak,stall": `-program is "leak,stall", want leak, group or both`,
		"-ring big":           `-ring is "big", want default, smallest or a number of bytes`,
		"-g 0":                "-g, -n, -group and -limit must be positive",
		"now":                 `"now" is not a flag`,
	} {
		_, err := parse(strings.Fields(args))
		require.EqualError(t, err, want, args)
	}
}

func TestBfloat16(t *testing.T) {
	for n, want := range map[int]uint32{0: 0, 1: 0x3f80, 2: 0x4000, 3: 0x4040, 8: 0x4100} {
		require.Equal(t, want, bfloat16(n), n)
	}
}
