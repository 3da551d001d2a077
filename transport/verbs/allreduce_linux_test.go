package verbs_test

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/verbs"
)

// An all-reduce of 8 bytes between ranks on RDMA devices is right and allocates nothing.
func TestDeviceAllReduce(t *testing.T) {
	if _, err := verbs.Network.Probe(transport.NetworkOptions{}); err != nil {
		if strings.Contains(os.Getenv("REQUIRE"), "rdma") {
			t.Fatal("REQUIRE=rdma: ", err)
		}
		t.Skip("scripts/verbs-guest runs this: ", err)
	}
	comms, err := ringo.OpenLocal(2, ringo.Config{Transport: "ib"})
	require.NoError(t, err)
	defer func() {
		for _, c := range comms {
			require.NoError(t, c.Close())
		}
	}()
	require.Contains(t, strings.Join(comms[0].Paths(), "\n"), "ib")
	var data [2][]int64
	round := func(rank int) {
		data[rank][0] = int64(1 + rank)
		if err := ringo.AllReduce(comms[rank], data[rank], ringo.Sum); err != nil || data[rank][0] != 3 {
			t.Errorf("rank %d has %d: %v", rank, data[rank][0], err)
		}
	}
	const warm, runs = 20, 100
	data[0], data[1] = make([]int64, 1), make([]int64, 1)
	var other sync.WaitGroup
	other.Go(func() {
		for range warm + 1 + runs { // AllocsPerRun runs once more
			round(1)
		}
	})
	for range warm {
		round(0)
	}
	require.Zero(t, testing.AllocsPerRun(runs, func() { round(0) }))
	other.Wait()
}
