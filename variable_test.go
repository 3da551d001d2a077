package ringo

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a communicator keeps for the next Scan does not hold the memory of the last one.
func TestScanForgetsMemory(t *testing.T) {
	comms := local(t, 2, Config{})
	gone := make(chan struct{}, len(comms))
	noErrors(t, each(comms, func(c *Comm) error {
		data := make([]int32, 1<<10)
		runtime.AddCleanup(&data[0], func(struct{}) { gone <- struct{}{} }, struct{}{})
		return Scan(c, data, Sum)
	}))
	require.Eventually(t, func() bool {
		runtime.GC()
		return len(gone) == len(comms)
	}, 10*time.Second, time.Millisecond)
}
