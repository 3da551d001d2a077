package verbs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/transport"
)

// A communicator that has not all devices gets no memory that the others know: they could not
// be closed while it uses that.
func TestAreasKeepToDevices(t *testing.T) {
	f := newFabric(t, "fx0", "fx1")
	one := New(transport.Config{Limits: few}, Options{Verbs: f, HCAs: "=fx0"})
	defer one.Close()
	all := new(Options)
	all.Verbs = f
	_, both, err := find(all)
	require.NoError(t, err)
	a, err := areas.take(one.shape.size(), both)
	require.NoError(t, err)
	areas.give(a)
	_, err = one.open()
	require.NoError(t, err)
	defer one.ends.Leave()
	held, err := areas.take(one.shape.size(), one.devices)
	require.NoError(t, err)
	defer areas.give(held)
	release(both)
	require.Len(t, held.mrs, 1)
	require.Contains(t, held.mrs, one.devices[0])
}
