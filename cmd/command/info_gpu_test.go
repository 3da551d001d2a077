package command

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
)

// Info tells which devices reach each other, over which links, and how well.
func TestGPULinks(t *testing.T) {
	const torn = "            lines of 128 bytes come whole over NVLink alone: elsewhere they may tear, and have " +
		"digests (RINGO_LINES=1 sends them without)\n"
	nv, pcie, none := cuda.Peer{Access: true, Link: cuda.NVLink}, cuda.Peer{Access: true, Rank: 1, Link: cuda.PCIe},
		cuda.Peer{Link: cuda.PCIe}
	for _, x := range []struct {
		name  string
		peers [][]cuda.Peer
		text  string
		links [][]int
	}{
		{"one device", [][]cuda.Peer{{{}}}, "", nil},
		{"none", [][]cuda.Peer{{{}, none}, {none, {}}},
			"gpu links   none: no device reaches another's memory; data go through the host's\n", [][]int{{0, -1}, {-1, 0}}},
		{"all", [][]cuda.Peer{{{}, nv}, {nv, {}}},
			"gpu links   every device reaches every other's memory, over NVLink\n", [][]int{{0, 0}, {0, 0}}},
		{"mixed", [][]cuda.Peer{{{}, nv, pcie}, {nv, {}, none}, {pcie, none, {}}},
			"gpu links   over NVLink or PCIe, all but 1→2 2→1; those go through the host's memory\n" + torn +
				"  from 0      ·  0  1   (0 is the best kind of link)\n" +
				"  from 1      0  ·  -   (0 is the best kind of link)\n" +
				"  from 2      1  -  ·   (0 is the best kind of link)\n", [][]int{{0, 0, 1}, {0, 0, -1}, {1, -1, 0}}},
	} {
		t.Run(x.name, func(t *testing.T) {
			var b bytes.Buffer
			v := &inventory{w: &b, GPU: &gpuInventory{}}
			v.gpuLinks(x.peers)
			require.Equal(t, x.text, b.String())
			require.Equal(t, x.links, v.GPU.Links)
		})
	}
}
