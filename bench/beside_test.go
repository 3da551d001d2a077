package bench

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/tier"
)

// besideOf gives medians and least times, and what they are in units of the ideal and of each alone.
func TestBesideOf(t *testing.T) {
	b := besideOf(20, 528, []float64{90, 110, 100}, []float64{200, 240}, []ends{
		{collectives: 150, computing: 230, both: 235}, {collectives: 250, computing: 260, both: 270},
		{collectives: 200, computing: 242, both: 245},
	})
	require.Equal(t, &Beside{
		Collectives: 20, Blocks: 528,
		Alone: Timing{100, 90}, Compute: Timing{220, 200}, Both: Timing{245, 235},
		CollectivesBeside: Timing{200, 150}, ComputeBeside: Timing{242, 230},
		Ideal: 220, Sum: 320, Slower: 1.1, CollectivesSlower: 2,
	}, b)
	require.InDelta(t, 245.0/220, b.ofIdeal(), 1e-9)
	require.Zero(t, besideOf(1, 1, []float64{0}, []float64{0}, []ends{{}}).Slower, "a clock that saw nothing")
}

// besideExample is example, with times beside computing.
func besideExample() *Report {
	r := example()
	for i := range r.Rows {
		row := &r.Rows[i]
		us := 20 * row.OutOfPlace.Time
		row.Beside = besideOf(20, 528, []float64{us}, []float64{us * 0.9}, []ends{{us * 1.2, us * 1.1, us * 1.2}})
	}
	return r
}

func TestBesideTable(t *testing.T) {
	var b bytes.Buffer
	besideExample().print(&b)
	golden(t, "beside.txt", b.Bytes())
	for _, line := range strings.Split(strings.TrimSpace(b.String()), "\n") {
		require.LessOrEqual(t, len(line), 230)
	}
}

func TestBesidePlot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.svg")
	require.NoError(t, Plot(file, "", besideExample()))
	svg, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, text := range []string{"ringo shm", "ideal of ringo shm", "openmpi",
		"time until the collectives and computing have ended", "computing slower (times)"} {
		require.Contains(t, string(svg), text)
	}
	require.NotContains(t, string(svg), "bus bandwidth")
}

// Collectives and computing run beside each other on emulated GPUs, in one process and in
// several, queued one by one and as graphs, and the results are right.
func TestRunBeside(t *testing.T) {
	tier.Long(t)
	type test struct {
		name string
		args []string
	}
	for _, c := range tier.Some(5, []test{
		{"products", []string{"allreduce", "-g", "2", "-beside-product", "400us"}},
		{"graphs, groups", []string{"allreduce", "-g", "2", "-G", "3", "-m", "2"}},
		{"one by one", []string{"allreduce", "-g", "2"}},
		{"two processes", []string{"allgather", "-np", "2", "-g", "1"}},
		{"registered", []string{"alltoall", "-g", "2", "-R", "1", "-algo", "window"}},
	}) {
		t.Run(c.name, func(t *testing.T) {
			plot := filepath.Join(t.TempDir(), "p.html")
			r, out := measureHere(t, append(c.args, "-device", "emu", "-beside", "-plot", plot, "-b", "4K", "-e", "4K")...)
			require.Zero(t, r.Wrong())
			require.Len(t, r.Rows, 1)
			b := r.Rows[0].Beside
			require.NotNil(t, b)
			each := 2
			if c.name == "graphs, groups" {
				each = 6
			}
			require.Equal(t, each, b.Collectives)
			require.Positive(t, b.Blocks)
			require.Positive(t, b.Alone.Time)
			require.Positive(t, b.Compute.Time)
			require.Equal(t, max(b.Alone.Time, b.Compute.Time), b.Ideal)
			require.GreaterOrEqual(t, b.Both.Time, b.ComputeBeside.Time)
			require.GreaterOrEqual(t, b.Both.Time, b.CollectivesBeside.Time)
			if c.name == "products" {
				require.Equal(t, "a kernel of one block a multiprocessor", b.Computing)
				require.Contains(t, out, "# beside: products of matrices, 400µs each")
			} else {
				require.Contains(t, out, "# beside: kernels of up to 16 waves")
			}
			page, err := os.ReadFile(plot)
			require.NoError(t, err)
			require.Contains(t, string(page), "collectives and compute")
		})
	}
}
