// Ranks that leave in any order; known memory.

package gpucomm

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// apart is a group whose ranks are as if each had a process of its own.
type apart struct {
	bootstrap.Group
	of string
}

func (g apart) Key() []byte { return fmt.Appendf(nil, "%s of rank %d", g.of, g.Rank()) }

// Ranks of several processes close their communicators in any order, one after the other,
// and wait for each other once.
func TestLeaveInAnyOrder(t *testing.T) {
	list := gputest.GPUs(t, 2)
	memory := memories(t, list, 64)
	start := time.Now()
	t.Run("", func(t *testing.T) { // ends with Close, one after the other
		for _, name := range []string{"first", "second", "third"} {
			groups := bootstrap.Local(2)
			for r := range groups {
				groups[r] = apart{groups[r], name}
			}
			comms := openOn(t, groups, list, nil)
			for r := range comms {
				require.NoError(t, comms[r].do(&call.Call{Kind: call.AllReduce, In: memory[r], Out: memory[r], Count: 16,
					Type: kernels.Float32}))
			}
		}
	})
	require.Less(t, time.Since(start), farewellTime)
}

// Memory is confirmed once an allocation, however many of its parts are used.
func TestKnownMemory(t *testing.T) {
	list := gputest.GPUs(t, 1)
	g := open(t, list, nil)[0]
	whole := memories(t, list, 4096)[0]
	admit := func(r mem.Region) {
		require.NoError(t, list[0].With(func() error { return g.admission.admitMemory("In", r, 4) }))
	}
	for at := range 100 {
		admit(whole.Slice(4*at, 40))
	}
	require.Equal(t, []mem.Region{whole}, g.admission.memory)
	var others []mem.Region
	for range 40 {
		others = append(others, memories(t, list, 256)...)
	}
	for range 2 {
		for _, r := range others {
			admit(r.Slice(16, 64))
		}
	}
	require.Len(t, g.admission.memory, 41)
	for i := range g.admission.memory[1:] {
		require.Less(t, g.admission.memory[i].Ptr(), g.admission.memory[i+1].Ptr())
	}
	require.True(t, g.admission.has(whole))
	require.False(t, g.admission.has(mem.Device(0, whole.Ptr()+4000, 100)), "it ends outside")
	g.admission.add(mem.Device(0, whole.Ptr()+1000, 8))
	require.False(t, g.admission.has(whole), "what overlaps is gone")
}
