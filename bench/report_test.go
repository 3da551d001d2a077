package bench

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A report is the same after Save and Load.
func TestReportRoundTrip(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	want := example()
	require.NoError(t, want.Save(file))
	got, err := Load(file)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, int64(2), got.Wrong())
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, err string }{
		"other":    {`{"schema":"x","ranks":1}`, `schema is "x"`},
		"not json": {`hello`, "invalid character"},
		"no ranks": {`{"schema":"ringo-bench/1"}`, "ranks is not positive"},
		"negative": {`{"schema":"ringo-bench/1","ranks":1,"rows":[{"size":-1}]}`, "negative size"},
	} {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(c.text), 0o644))
		_, err := Load(file)
		require.ErrorContains(t, err, c.err, name)
		require.ErrorContains(t, err, file)
	}
	_, err := Load(filepath.Join(dir, "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func FuzzParseReport(f *testing.F) {
	f.Add([]byte(`{"schema":"ringo-bench/1","ranks":2,"rows":[{"program":"ringo","collective":"allreduce","size":8,"out_of_place":{"time_us":1}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseReport(b)
		if err != nil {
			return
		}
		r.Wrong()
		_ = lines("allreduce", []*Report{r})
	})
}
