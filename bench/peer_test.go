package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/stretchr/testify/require"
)

// oneSeries is a series of one collective, of sums of float32.
func oneSeries(name string, counts ...int) *series {
	c, _ := find(name)
	return &series{Collective: c, typ: ringo.Float32, op: ringo.Sum, counts: counts}
}

func TestParsePeer(t *testing.T) {
	s := oneSeries("allgather", 2, 256)
	rows, err := parsePeer(strings.NewReader("[host] a warning\nrow 2 100 1.5 -1\n\nrow 256 50 20 10.25\n"), "mpich", s, 4)
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.Equal(t, Row{Program: "mpich", Collective: "allgather", Size: 32, Count: 2, Type: "float32", Op: "none",
		Root:       -1,
		OutOfPlace: measure(s.Collective, 32, 4, 1.5, 100)}, rows[0])
	require.Equal(t, 10.25, rows[1].InPlace.Time)
	require.InDelta(t, 4096/10.25/1e3*0.75, rows[1].InPlace.BusBW, 1e-9)

	rows, err = parsePeer(strings.NewReader("row 2 100 1.5 -1 0.5 0.29\n"), "mpich", s, 4)
	require.NoError(t, err)
	require.Equal(t, &Deviation{0.5, 0.29}, rows[0].Error)
	_, err = parsePeer(strings.NewReader("unsupported MPI has no operator avg\n"), "mpich", s, 4)
	require.True(t, errors.Is(err, errUnsupported))
	require.ErrorContains(t, err, "no operator avg")
	for _, bad := range []string{"row 1 2 3", "row x 1 1 1", "row 1 0 1 1", "row -1 1 1 1", "row 1 1 -1 1",
		"row 1 1 NaN 1", "row 1 1 1 Inf",
		"row 1 1 1 1 0.5", "row 1 1 1 1 0.1 0.2", "row 1 1 1 1 NaN 0", "row 1 1 1 1 Inf 0", "row 1 1 1 1 1 x"} {
		_, err := parsePeer(strings.NewReader(bad), "gloo", s, 4)
		require.ErrorContains(t, err, "output of gloo", bad)
	}
}

func FuzzParsePeer(f *testing.F) {
	f.Add("row 2 100 1.5 -1\nunsupported x\n")
	s := oneSeries("allreduce", 1)
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := parsePeer(strings.NewReader(text), "openmpi", s, 3)
		if err != nil {
			return
		}
		for _, r := range rows {
			require.GreaterOrEqual(t, r.OutOfPlace.Time, 0.0)
		}
	})
}

// The peers must understand our parameters, and we their output. REQUIRE names the
// peers that have to be installed.
func TestPeers(t *testing.T) {
	tier.Heavy(t) // it is all compilers and their processes
	cfg := NewConfig()
	cfg.Iterations, cfg.Warmup, cfg.PeerTimeout = 2, 1, 5*time.Minute
	for name, p := range peers {
		t.Run(name, func(t *testing.T) {
			binary, err := p.build(context.Background())
			if err != nil && strings.Contains(err.Error(), "apt-get install") {
				need.Missing(t, name, err.Error())
			}
			require.NoError(t, err)
			for _, v := range tier.Some(100, p.variants(true)) {
				s := oneSeries("allreduce", 1, 1000)
				rows, err := p.run(context.Background(), cfg, v, binary, 2, s, maxTime)
				require.NoError(t, err)
				require.Len(t, rows, 2)
				require.Equal(t, int64(4000), rows[1].Size)
				require.Nil(t, rows[1].Error)
				withErrors := *cfg
				withErrors.Error = true
				rows, err = p.run(context.Background(), &withErrors, v, binary, 2, s, maxTime)
				require.NoError(t, err)
				require.Greater(t, rows[1].Error.Max, 0.4, "of one rounding")
				require.LessOrEqual(t, rows[1].Error.Max, 0.5)
				s.op = ringo.Avg
				_, err = p.run(context.Background(), cfg, v, binary, 2, s, maxTime)
				require.ErrorIs(t, err, errUnsupported)
			}
		})
	}
}

// The rows of a peer that hangs in its finalizing count all the same.
func TestPeerLingers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no shell")
	}
	launcher := filepath.Join(t.TempDir(), "mpirun")
	require.NoError(t, os.WriteFile(launcher, []byte("#!/bin/sh\nsleep 600 &\necho row 1 2 1.5 1\necho end\nwait\n"),
		0o755))
	p := *peers["mpich"]
	p.tools, p.patience = []string{"", launcher}, 100*time.Millisecond
	cfg := NewConfig()
	cfg.PeerTimeout = 5 * time.Minute
	start := time.Now()
	rows, err := p.run(context.Background(), cfg, variant{}, "", 2, oneSeries("allreduce", 1), maxTime)
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.Less(t, time.Since(start), time.Minute)
}

func TestPeerAbsent(t *testing.T) {
	p := *peers["mpich"]
	p.tools = []string{"mpicc.no-such-thing"}
	_, err := p.build(context.Background())
	require.EqualError(t, err, "mpicc.no-such-thing not found; apt-get install mpich libmpich-dev")
}

func TestMedianOfVariants(t *testing.T) {
	c, _ := find("allreduce")
	var s samples
	row := func(us float64) Row {
		return Row{Program: "openmpi", Collective: "allreduce", Size: 4096, Count: 1024, Type: "float32", Op: "sum", Root: -1,
			OutOfPlace: measure(c, 4096, 4, us, 1), InPlace: measure(c, 4096, 4, 10-us, 1)}
	}
	for _, us := range []float64{5, 9, 6} {
		s.add("a", row(us))
	}
	for _, us := range []float64{7, 1, 8, 3} {
		s.add("b", row(us))
	}
	best := s.best("openmpi", row(0), 4)
	require.Equal(t, 5.0, best.OutOfPlace.Time, "median of 1 3 7 8")
	require.Equal(t, 1.0, best.OutOfPlace.Min)
	require.Equal(t, 4.0, best.InPlace.Time, "median of 5 1 4")
	require.InDelta(t, 4096/5.0/1e3*1.5, best.OutOfPlace.BusBW, 1e-9)
	require.Nil(t, s.best("gloo", row(0), 4))
}

// TestPeerOfStrangers: without a home a peer is compiled among this user's own temporary files, and a program that
// another could have left for it is not run.
func TestPeerOfStrangers(t *testing.T) {
	sh := need.Tool(t, "sh")
	temporary := t.TempDir()
	require.NoError(t, os.Chmod(temporary, 0o777|os.ModeSticky))
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("TMPDIR", temporary)
	p := &peer{name: "made", tools: []string{sh}, compile: func(cc, _, binary string) []string {
		return []string{cc, "-c", "echo own >" + binary}
	}}
	binary, err := p.build(t.Context())
	require.NoError(t, err)
	text, err := os.ReadFile(binary)
	require.NoError(t, err)
	require.Equal(t, "own\n", string(text))
	other := filepath.Join(temporary, "ringo", "peers", filepath.Base(binary))
	require.NoError(t, os.MkdirAll(filepath.Dir(other), 0o755))
	require.NoError(t, os.WriteFile(other, []byte("another's"), 0o755))
	again, err := p.build(t.Context())
	require.NoError(t, err)
	require.Equal(t, binary, again)
	require.NoError(t, os.Chmod(binary, 0o777))
	_, err = p.build(t.Context())
	require.ErrorContains(t, err, "may be written by other users")
	require.NoError(t, os.Chmod(binary, 0o755))
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(filepath.Dir(binary), 65534, 65534))
		_, err = p.build(t.Context())
		require.ErrorContains(t, err, "belongs to ")
	}
}
