package procs

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// A process is killed: the others go on within a second.
func TestRecoverProcesses(t *testing.T) {
	cmds := commtest.Processes(t, 4, "recover")
	for _, cmd := range cmds {
		commtest.Await(t, cmd, "under way")
	}
	require.NoError(t, cmds[2].Process.Kill())
	for _, r := range []int{0, 1, 3} {
		commtest.Await(t, cmds[r], "shrunk to 3 in time")
	}
	for _, r := range []int{0, 1, 3} {
		require.NoError(t, cmds[r].Wait(), "rank %d: %s", r, commtest.Output(cmds[r]))
	}
}

// recoverMain is a rank that loses another one.
func recoverMain(c *ringo.Comm) int {
	x := make([]float32, 50000)
	for i := 0; ; i++ {
		if i == 10 {
			fmt.Println("under way")
		}
		if err := ringo.AllReduce(c, x, ringo.Avg); err == nil {
			continue
		}
		began := time.Now()
		next, err := c.Shrink(context.Background())
		if err != nil {
			fmt.Println("error:", err)
			return 3
		}
		defer next.Close()
		if took := time.Since(began); took > tier.Patience {
			fmt.Println("took", took)
			return 4
		}
		ones := []int32{1}
		if err := ringo.AllReduce(next, ones, ringo.Sum); err != nil || int(ones[0]) != next.Size() {
			fmt.Println("wrong:", ones, err)
			return 5
		}
		fmt.Println("shrunk to", next.Size(), "in time")
		return 0
	}
}
