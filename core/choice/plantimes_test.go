package choice

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels/collective"
	"github.com/ringo-go/ringo/transport"
)

// A timing is what "ringo tune" has measured of a collective at one size.
type timing struct {
	kind call.Kind
	size int // of the larger buffer
	us   map[call.Algo]float64
}

// timings reads the tables of "ringo tune".
func timings(t *testing.T, file string) (all []timing) {
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	var kind call.Kind
	var algos []call.Algo
	for sc := bufio.NewScanner(f); sc.Scan(); {
		words := strings.Fields(sc.Text())
		switch {
		case strings.HasPrefix(sc.Text(), "# ") && strings.Contains(sc.Text(), "out of place, us"):
			kind, err = parsePlanKind(strings.TrimSuffix(words[1], ","))
			require.NoError(t, err)
		case len(words) > 3 && words[0] == "#" && words[1] == "size":
			algos = nil
			for _, w := range words[3:] {
				a, err := call.ParseAlgo(w)
				require.NoError(t, err)
				algos = append(algos, a)
			}
		case len(words) == len(algos)+1 && len(algos) > 0 && words[0] != "#":
			row := timing{kind: kind, us: map[call.Algo]float64{}}
			row.size, err = strconv.Atoi(words[0])
			require.NoError(t, err)
			for i, a := range algos {
				if us, err := strconv.ParseFloat(strings.TrimRight(words[i+1], "*+"), 64); err == nil {
					row.us[a] = us
				}
			}
			all = append(all, row)
		default:
			algos = nil
		}
	}
	return all
}

// best is the time of the quickest algorithm that serves.
func (m *timing) best(registered bool) float64 {
	best := math.Inf(1)
	for a, us := range m.us {
		if registered || a != call.Window && a != call.Copies {
			best = min(best, us)
		}
	}
	return best
}

// TestPlanAgainstTimes: by the times that were measured on H200s, the built-in plan
// is near the best choice at every size, and the model not too far from it.
func TestPlanAgainstTimes(t *testing.T) {
	for _, ranks := range []int{2, 4} {
		file := filepath.Join("..", "..", "bench", "results", fmt.Sprintf("tune-h200x%d.txt", ranks))
		if _, err := os.Stat("../../bench"); err != nil {
			t.Skip("the source is not here")
		}
		times := timings(t, file)
		require.Greater(t, len(times), 200)
		f := &Fabric{Near: transport.OverP2P, Far: transport.OverP2P, Topo: Topology{Ranks: ranks}}
		for range ranks {
			f.GPUs = append(f.GPUs, "NVIDIA H200")
		}
		for _, test := range []struct {
			name       string
			gpu        string
			registered bool
			most, mean float64 // of what is lost
		}{
			{"built-in", "NVIDIA H200", false, 0.15, 0.005},
			{"built-in, registered", "NVIDIA H200", true, 0.15, 0.005},
			{"model", "other", false, 0.8, 0.03},
		} {
			t.Run(fmt.Sprintf("%d/%s", ranks, test.name), func(t *testing.T) {
				for r := range f.GPUs {
					f.GPUs[r] = test.gpu
				}
				c := Chooser{Topo: f.Topo, Kernels: allKernels, Rows: RowsFor(nil, f, collective.MaxMessage)}
				var sum, most float64
				var worst string
				for _, m := range times {
					bytes := m.size / m.kind.Shares(ranks)
					a := c.Choose(Question{Kind: m.kind, Bytes: bytes, OnGPU: true, Registered: test.registered}).Algo
					require.Contains(t, m.us, a, "%v of %d", m.kind, m.size)
					lost := m.us[a]/m.best(test.registered) - 1
					if sum += lost; lost > most {
						most, worst = lost, fmt.Sprintf("%v of %d by %v", m.kind, m.size, a)
					}
				}
				t.Logf("lost %.4f of the time on average, %.3f at most: %s", sum/float64(len(times)), most, worst)
				require.LessOrEqual(t, most, test.most, worst)
				require.LessOrEqual(t, sum/float64(len(times)), test.mean)
			})
		}
	}
}
