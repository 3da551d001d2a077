package host

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/freeport"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// A process is killed: the others go on within a second, also without the one that serves the rendezvous.
func TestRecoverProcesses(t *testing.T) {
	for victim, serves := range map[int]string{2: "another process", 0: "rank 0"} {
		t.Run(serves+" serves", func(t *testing.T) {
			var env []string
			if victim == 0 {
				env = []string{"RINGO_COMM_ID=" + freeport.Addr(t), "RINGO_COMM_SECRET=" + rand.Text()}
			}
			cmds := commtest.Processes(t, 4, "recover", env...)
			for _, cmd := range cmds {
				commtest.Await(t, cmd, "under way")
			}
			require.NoError(t, cmds[victim].Process.Kill())
			cmds = slices.Delete(cmds, victim, victim+1)
			for _, cmd := range cmds {
				commtest.Await(t, cmd, "shrunk to 3 in time")
			}
			for _, cmd := range cmds {
				require.NoError(t, cmd.Wait(), commtest.Output(cmd))
			}
		})
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
