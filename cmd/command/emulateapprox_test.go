package command

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestApproximateLine: the report names what ran once, in order, and not more than fits a line.
func TestApproximateLine(t *testing.T) {
	r := &emulateReport{}
	require.Empty(t, r.approximate())
	r.approximated([]string{"sinf", "ex2.approx.f32"})
	r.approximated([]string{"sinf"})
	require.Equal(t, "results of ex2.approx.f32, sinf may differ from hardware's in their last bits\n", r.approximate())
	for i := range 20 {
		r.approximated([]string{fmt.Sprint("f", i)})
	}
	require.Contains(t, r.approximate(), " and 10 more may differ")
}
