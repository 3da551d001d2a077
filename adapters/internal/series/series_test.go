package series

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/trace"
)

// Calls of one Series get one T, however many goroutines call Get at once.
func TestTable(t *testing.T) {
	var table Table[Series]
	var made []Series
	var work sync.WaitGroup
	a, b := Series{Rank: 1, Kind: "AllReduce", Algo: "ring"}, Series{Rank: 1, Kind: "AllReduce", Algo: "ring", GPU: true}
	for range 8 {
		for _, s := range []Series{a, b} {
			work.Go(func() {
				got := table.Get(s, func(s Series) *Series { made = append(made, s); return &s })
				if *got != s {
					t.Errorf("%v for %v", *got, s)
				}
			})
		}
	}
	work.Wait()
	require.ElementsMatch(t, []Series{a, b}, made)
	require.Equal(t, []string{"host", "gpu"}, []string{a.Memory(), b.Memory()})
	require.Equal(t, b, Of(&trace.Call{Rank: 1, Kind: "AllReduce", Algo: "ring", GPU: true, Bytes: 5}, ""))
}

func TestPeers(t *testing.T) {
	same := func(peer string) string { return peer }
	require.Equal(t, []string{"0", "1", "2"}, Peers(&trace.Call{Size: 3}, "0", 3, same))
	require.Equal(t, []string{""}, Peers(&trace.Call{Size: 4}, "0", 3, same))
	require.Equal(t, []string{""}, Peers(&trace.Call{Size: 3}, More, 3, same))
	require.Empty(t, Peers(&trace.Call{Size: 3, GPU: true}, "0", 3, same))
}

// The number of names is bounded, however many communicators come and go.
func TestComms(t *testing.T) {
	names := Comms{Most: 2}
	var got []string
	for _, id := range []string{"c0", "fe", "c0", "ee", "fe", "dd"} {
		got = append(got, names.Name(&trace.Call{Comm: id}))
	}
	require.Equal(t, []string{"0", "1", "0", More, "1", More}, got)
}
