package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A launch has the attributes that it asks for, under the driver's numbers; those of the launch
// before do not stay.
func TestLaunchAttributes(t *testing.T) {
	var f launchFrame
	require.EqualValues(t, 2, f.setAttrs(&Launch{Cooperative: true, Priority: -5}))
	require.Equal(t, [2]launchAttribute{{id: 2, value: [16]uint32{1}}, {id: 8, value: [16]uint32{1<<32 - 5}}}, f.attrs)
	require.EqualValues(t, 1, f.setAttrs(&Launch{Priority: -1}))
	require.Equal(t, launchAttribute{id: 8, value: [16]uint32{1<<32 - 1}}, f.attrs[0])
	require.Zero(t, f.setAttrs(&Launch{}))
}
