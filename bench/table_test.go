package bench

import (
	"bytes"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, got, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "run with -rewrite")
	require.Equal(t, string(want), string(got))
}

// example is a report with a bit of everything.
func example() *Report {
	zero, two := int64(0), int64(2)
	all, _ := find("allreduce")
	a2a, _ := find("alltoall")
	r := &Report{
		Header: Header{Schema: Schema, Date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Host: "host", OS: "linux",
			Arch: "amd64",
			CPU:  "Some CPU <fast>", Cores: 4, Go: "go1.26", Version: "0.1.0", Flags: []string{"allreduce", "-np", "4"}},
		Ranks: 4, Processes: 4, Transport: "shm",
	}
	for i, size := range []int64{0, 8, 1 << 10, 64 << 10, 1 << 20, 64 << 20} {
		us := 0.2123 + float64(size)/3000
		ours := Row{Program: "ringo", Collective: "allreduce", Size: size, Count: int(size / 4), Type: "float32", Op: "sum",
			Root:       -1,
			OutOfPlace: measure(all, size, 4, us, 100), InPlace: measure(all, size, 4, us*0.9, 100)}
		ours.OutOfPlace.Wrong, ours.InPlace.Wrong = &zero, &zero
		if i == 2 {
			ours.InPlace.Wrong = &two
		}
		r.Rows = append(r.Rows, ours)
		if i > 0 {
			peer := ours
			peer.Program = "openmpi"
			peer.OutOfPlace, peer.InPlace = measure(all, size, 4, us*1.5+1, 50), measure(all, size, 4, us*300, 50)
			r.Rows = append(r.Rows, peer)
		}
		if i == 3 {
			peer := ours
			peer.Program, peer.InPlace = "gloo", nil
			peer.OutOfPlace = measure(all, size, 4, 123456, 5)
			r.Rows = append(r.Rows, peer)
		}
	}
	r.Rows = append(r.Rows, Row{Program: "ringo", Collective: "alltoall", Size: 1 << 20, Count: 1 << 15, Type: "float64",
		Op: "none", Root: -1,
		OutOfPlace: measure(a2a, 1<<20, 4, 432.1, 46)})
	return r
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	example().print(&b)
	p := &printer{w: &b}
	p.measure(example().Rows[0].OutOfPlace)
	p.footer(true)
	p.footer(false)
	p.wrong = 3
	p.footer(true)
	golden(t, "table.txt", b.Bytes())
}

func TestFormats(t *testing.T) {
	for us, want := range map[float64]string{0: "0.00", 0.1234: "0.12", 99.994: "99.99", 123.456: "123.5", 4321.9: "4322",
		1e7: "10000000"} {
		require.Equal(t, want, formatTime(us))
	}
	for x, want := range map[float64]string{math.NaN(): "-", 1: "1.00x", 12.345: "12.35x", 1234: "1234x"} {
		require.Equal(t, want, formatRatio(x))
	}
	require.Equal(t, " ab  ", center("ab", 5))
}

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
