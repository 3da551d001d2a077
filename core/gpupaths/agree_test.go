package gpupaths

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/p2p"
)

// A pair without P2P leaves the links of the pairs after it as they are, and P2P over PCIe is a path of its own.
func TestLinksOfPairs(t *testing.T) {
	link := func(i int) cuda.Link { return []cuda.Link{cuda.NVLink, cuda.PCIe}[i] }
	offers := []p2p.Offer{
		{UUID: "a", Links: map[string]cuda.Link{"c": link(0), "d": link(1)}},
		{UUID: "b"},
		{UUID: "c", Links: map[string]cuda.Link{"a": link(0), "d": link(0)}},
		{UUID: "d", Links: map[string]cuda.Link{"a": link(1), "c": link(0)}},
	}
	n := &Net{pairs: pairs{size: 4, paths: make([]transport.GPUPath, 16), links: make([]cuda.Link, 16)}}
	for _, i := range n.indices() {
		n.paths[i] = transport.OverHost
	}
	for _, p := range [][2]int{{0, 2}, {0, 3}, {2, 3}} {
		n.paths[n.pair(p[0], p[1])] = transport.OverP2P
	}
	n.name(offers)
	for _, p := range []struct {
		a, b int
		path transport.GPUPath
		link cuda.Link
	}{
		{0, 1, transport.OverHost, ""}, {0, 2, transport.OverP2P, cuda.NVLink}, {1, 2, transport.OverHost, ""},
		{0, 3, transport.OverPCIe, cuda.PCIe}, {1, 3, transport.OverHost, ""}, {2, 3, transport.OverP2P, cuda.NVLink},
	} {
		i := n.pair(p.a, p.b)
		require.Equal(t, p.path, n.paths[i], p)
		require.Equal(t, p.link, n.links[i], p)
	}
}
