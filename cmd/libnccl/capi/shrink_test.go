package capi

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
)

// TestShrinkOnAnotherHost: after a failure the first rank that stays has to serve where all met first, and says so
// where it cannot.
func TestShrinkOnAnotherHost(t *testing.T) {
	l := onHost()
	comms, err := l.InitAll(3, nil)
	require.NoError(t, err)
	elsewhere, err := bootstrap.IDFor("192.0.2.1:4000", "secret") // an address for documentation, nobody's
	require.NoError(t, err)
	c, err := l.comms.get(comms[1])
	require.NoError(t, err)
	c.meetAgain(&elsewhere)
	_, err = l.Shrink(0, comms[1], []int{0}, nil, shrinkAbort)
	require.ErrorContains(t, err, "192.0.2.1:4000 is no address of this host")
	require.ErrorContains(t, err, "rank 1 has to serve there")
	require.ErrorContains(t, err, "new ncclGetUniqueId")
	require.True(t, isHere("127.0.0.1:1") && isHere("localhost:1"))
	for _, c := range comms {
		require.NoError(t, l.Destroy(c))
	}
}
