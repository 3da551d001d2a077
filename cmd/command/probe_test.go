package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bench/device"
	"github.com/ringo-go/ringo/internal/test/tier"
)

func TestProbeEmulated(t *testing.T) {
	tier.Long(t)
	file := filepath.Join(t.TempDir(), "probe.json")
	code, stdout, stderr := ringoHere("probe", "-device", "emu", "-d", "int32,float16", "-o", "max", "-k", "2", "-b", "1K",
		"-json", file)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "times mean nothing")
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	var r device.Report
	require.NoError(t, json.Unmarshal(b, &r))
	require.Equal(t, device.Schema, r.Schema)
	require.Equal(t, "emu", r.Driver.Name)
	require.NotEmpty(t, r.Version)
	require.Equal(t, []string{"-device", "emu", "-d", "int32,float16", "-o", "max", "-k", "2", "-b", "1K", "-json", file},
		r.Flags)
	require.Len(t, r.Rows, 3)
}

func TestProbeMistakes(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for want, args := range map[string][]string{
		`unknown device "cdua"; did you mean cuda?`:            {"-device", "cdua"},
		`unknown type "flaot32"; did you mean float32?`:        {"-d", "flaot32"},
		`unknown operator "smu"; did you mean sum?`:            {"-o", "smu"},
		"-k 1,x: want numbers":                                 {"-k", "1,x"},
		"-k 9: want numbers from 1 to 8":                       {"-k", "9"},
		"parse size":                                           {"-b", "1Q"},
		"-b 15: want a multiple of 16":                         {"-b", "15"},
		"-reps 0: want 1 to 10000":                             {"-reps", "0"},
		`-first: unknown value "2"`:                            {"-first", "2"},
		`unexpected argument "x"`:                              {"x"},
		"bitwise operators need integers":                      {"-o", "bitand"},
		"-gpu -1: want the number":                             {"-gpu", "-1"},
		"-json " + filepath.Join(none, "x") + ": open " + none: {"-json", filepath.Join(none, "x")},
	} {
		code, _, stderr := ringoHere(append([]string{"probe"}, args...)...)
		require.Equal(t, 2, code, "%q", args)
		require.Contains(t, stderr, want, "%q", args)
	}
}

func TestProbeFirstUse(t *testing.T) {
	code, stdout, stderr := ringoHere("probe", "-device", "emu", "-first-use-of", "int8", "sum")
	require.Zero(t, code, stderr)
	var u device.FirstUse
	require.NoError(t, json.Unmarshal([]byte(stdout), &u))
	require.Equal(t, "int8", u.Type)
}
