package bench

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A plot has the lines of all programs and its title; a page has the tables too.
func TestPlot(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"p.svg", "p.html"} {
		require.NoError(t, Plot(filepath.Join(dir, name), "A <title>", example(), example()))
	}
	svg, err := os.ReadFile(filepath.Join(dir, "p.svg"))
	require.NoError(t, err)
	for _, text := range []string{"ringo shm", "openmpi", "gloo", "bus bandwidth (GB/s)", "size (bytes)",
		"float32 sum, 4 ranks on"} {
		require.Contains(t, string(svg), text)
	}
	require.Contains(t, string(svg), "A &lt;title&gt;")
	require.Contains(t, string(svg), "time, in multiples of ringo shm")
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else {
			require.NoError(t, err)
		}
	}
	html, err := os.ReadFile(filepath.Join(dir, "p.html"))
	require.NoError(t, err)
	require.Contains(t, string(html), "<svg")
	require.Contains(t, string(html), "Some CPU &lt;fast&gt;")
	require.Contains(t, string(html), "busbw")
}

func TestPlotOfNothing(t *testing.T) {
	require.ErrorContains(t, Plot(filepath.Join(t.TempDir(), "p.svg"), "", &Report{}), "no rows")
	require.ErrorContains(t, Plot("p.gif", "", example()), ".svg or .html")
}

// A title says which GPU it was, or how many cores.
func TestCaption(t *testing.T) {
	require.Equal(t, ": float32 sum, 4 ranks on 4 cores (Some CPU <fast>)",
		caption("allreduce", []*Report{example(), example()}))
	onGPU := example()
	onGPU.GPU = "NVIDIA H200"
	onGPU.Notes = []string{"GPU memory: p2p with rank 1 (NVLink)"}
	onGPU.Links = onGPU.links()
	require.Equal(t, ": float32 sum, 4 × NVIDIA H200, NVLink", caption("allreduce", []*Report{onGPU}))
	onGPU.Notes = []string{"GPU memory: host memory with rank 1 (rank 0: NCCL_P2P_DISABLE is set)"}
	onGPU.Transport = "host memory"
	require.Equal(t, "host memory", onGPU.links())
	require.Empty(t, caption("allreduce", []*Report{example(), onGPU}), "nothing in common")
}

func TestLineLabels(t *testing.T) {
	other := example()
	other.Transport, other.Ranks = "socket", 8
	var labels []string
	for _, l := range lines("allreduce", []*Report{example(), other, other}) {
		labels = append(labels, l.label)
	}
	require.Equal(t, []string{
		"ringo shm, 4 ranks", "openmpi, 4 ranks", "gloo, 4 ranks",
		"ringo socket, 8 ranks", "openmpi, 8 ranks", "gloo, 8 ranks",
		"ringo socket, 8 ranks (2)", "openmpi, 8 ranks (2)", "gloo, 8 ranks (2)",
	}, labels)
}
