package gpu

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
)

// A process that ends while a peer has not left gives back nothing that the peer's kernels may still write to.
func TestExitKeepsMemory(t *testing.T) {
	if gputest.OnGPU() {
		gputest.GPUs(t, 2)
	}
	over := filepath.Join(t.TempDir(), "over")
	cmds := commtest.Processes(t, 2, "exits", "RINGO_TEST_OVER="+over)
	commtest.Await(t, cmds[1], "memory")
	require.Contains(t, commtest.Output(cmds[1]), "memory kept")
	require.NoError(t, os.WriteFile(over, nil, 0o600))
	for r, cmd := range cmds {
		require.NoError(t, cmd.Wait(), "rank %d: %s", r, commtest.Output(cmd))
	}
}

// exits is rank 1, which ends as a process with libnccl.so.2 does, or rank 0, which stays until the test is over.
func exits(c *ringo.Comm) int {
	x, free, err := windowMemory(c.Device(), false)
	if err == nil {
		err = c.Device().Write(x, make([]byte, x.Len()))
	}
	if err == nil {
		err = c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: 1000, Type: ringo.Float32, Op: ringo.Avg})
	}
	if err = errors.Join(err, c.Synchronize(0)); err != nil {
		fmt.Println("error:", err)
		return 3
	}
	if c.Rank() == 0 {
		for err = os.ErrNotExist; err != nil; time.Sleep(time.Millisecond) {
			_, err = os.Stat(os.Getenv("RINGO_TEST_OVER"))
		}
		return map[bool]int{true: 0, false: 4}[free() == nil]
	}
	before, _, _ := c.Device().Memory()
	bootstrap.Exit()
	err = c.Close()
	if after, _, _ := c.Device().Memory(); after > before {
		fmt.Println("memory given back:", after-before, err)
	} else {
		fmt.Println("memory kept", err)
	}
	os.Exit(0) // its memory goes with the process
	return 0
}
