package paths

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Of hosts whose cards differ the slowest counts, and one that does not know its rate makes it unknown.
func TestWireIsTheSlowest(t *testing.T) {
	const net = "fabric"
	wire := func(offers ...offer) Wire {
		a := &Agreement{profiles: make([]Profile, len(offers)+1), transports: &Transports{networks: []Network{{Name: net}}}}
		for _, o := range offers {
			a.offers = append(a.offers, map[string]offer{net: o})
		}
		a.offers = append(a.offers, nil) // this rank needs no network
		return a.wire()
	}
	slow, quick := offer{Mbps: 100, Devices: []string{"a"}}, offer{Mbps: 400, Devices: []string{"a", "b"}}
	for _, hosts := range [][]offer{{slow, quick}, {quick, slow}, {quick, slow, quick}} {
		require.Equal(t, Wire{Network: net, Mbps: 100, Cards: 1}, wire(hosts...))
	}
	require.Equal(t, Wire{Network: net, Mbps: 400, Cards: 2}, wire(quick, quick))
	require.Equal(t, Wire{Network: net, Mbps: 0, Cards: 1}, wire(quick, offer{Devices: []string{"a"}}))
	require.Equal(t, Wire{}, wire())

	// What a Config says counts before all cards, the least of several.
	shaped, more := offer{Mbps: 400, Given: 30, Devices: []string{"a"}}, offer{Given: 50, Devices: []string{"a"}}
	require.Equal(t, Wire{Network: net, Mbps: 30, Cards: 1}, wire(quick, more, shaped, more))
	require.Equal(t, Wire{Network: net, Mbps: 50, Cards: 1}, wire(quick, more))
}
