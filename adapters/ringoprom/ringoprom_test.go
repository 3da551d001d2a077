package ringoprom_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/adapters/ringoprom"
	"github.com/ringo-go/ringo/trace"
)

// call reports a call to an observer, as a communicator does.
func call(m *ringoprom.Metrics, c *trace.Call, kind string, bytes int, err error) {
	c.Reset()
	c.Kind, c.Algo, c.Bytes = kind, "ring", bytes
	m.Begin(c)
	c.End, c.Err = c.Start+5_000_000, err
	if len(c.Waits) > 0 {
		c.Waits[len(c.Waits)-1] = 2 * time.Millisecond
	}
	m.End(c)
}

func TestMetrics(t *testing.T) {
	m := ringoprom.New(ringoprom.Options{Labels: prometheus.Labels{"job": "train"}, Buckets: []float64{1e-3, 1e-2},
		MaxPeers: 4})
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(m))
	a := &trace.Call{Rank: 1, Size: 4, Waits: make([]time.Duration, 4)}
	b := &trace.Call{Rank: 1, Size: 4, GPU: true}
	c := &trace.Call{Comm: "fe", Rank: 7, Size: 9, Waits: make([]time.Duration, 9)}
	call(m, a, "AllReduce", 1000, nil)
	call(m, a, "AllReduce", 24, nil)
	call(m, a, "Broadcast", 8, errors.New("a peer has failed"))
	call(m, b, "AllReduce", 512, nil)
	call(m, c, "AllReduce", 1, nil)
	b.Reset()
	m.Begin(b) // and does not end
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP ringo_bytes_total Bytes of the larger buffer of calls.
# TYPE ringo_bytes_total counter
ringo_bytes_total{algorithm="ring",comm="0",job="train",kind="AllReduce",memory="gpu",rank="1"} 512
ringo_bytes_total{algorithm="ring",comm="0",job="train",kind="AllReduce",memory="host",rank="1"} 1024
ringo_bytes_total{algorithm="ring",comm="1",job="train",kind="AllReduce",memory="host",rank="7"} 1
ringo_bytes_total{algorithm="ring",comm="0",job="train",kind="Broadcast",memory="host",rank="1"} 8
# HELP ringo_calls_in_progress Calls that have begun and not ended.
# TYPE ringo_calls_in_progress gauge
ringo_calls_in_progress{comm="0",job="train",rank="1"} 1
ringo_calls_in_progress{comm="1",job="train",rank="7"} 0
# HELP ringo_wait_seconds_total How long a rank has waited for another.
# TYPE ringo_wait_seconds_total counter
ringo_wait_seconds_total{comm="0",job="train",peer="0",rank="1"} 0
ringo_wait_seconds_total{comm="0",job="train",peer="1",rank="1"} 0
ringo_wait_seconds_total{comm="0",job="train",peer="2",rank="1"} 0
ringo_wait_seconds_total{comm="0",job="train",peer="3",rank="1"} 0.006
ringo_wait_seconds_total{comm="1",job="train",peer="",rank="7"} 0.002
`), "ringo_bytes_total", "ringo_calls_in_progress", "ringo_wait_seconds_total"))
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP ringo_calls_total Calls that have ended.
# TYPE ringo_calls_total counter
ringo_calls_total{algorithm="ring",comm="0",job="train",kind="AllReduce",memory="gpu",rank="1",result="error"} 0
ringo_calls_total{algorithm="ring",comm="0",job="train",kind="AllReduce",memory="gpu",rank="1",result="ok"} 1
ringo_calls_total{algorithm="ring",comm="0",job="train",kind="AllReduce",memory="host",rank="1",result="error"} 0
ringo_calls_total{algorithm="ring",comm="0",job="train",kind="AllReduce",memory="host",rank="1",result="ok"} 2
ringo_calls_total{algorithm="ring",comm="1",job="train",kind="AllReduce",memory="host",rank="7",result="error"} 0
ringo_calls_total{algorithm="ring",comm="1",job="train",kind="AllReduce",memory="host",rank="7",result="ok"} 1
ringo_calls_total{algorithm="ring",comm="0",job="train",kind="Broadcast",memory="host",rank="1",result="error"} 1
ringo_calls_total{algorithm="ring",comm="0",job="train",kind="Broadcast",memory="host",rank="1",result="ok"} 0
`), "ringo_calls_total"))
	require.Equal(t, 4, testutil.CollectAndCount(m, "ringo_call_seconds"))
	require.Zero(t, testing.AllocsPerRun(20, func() { call(m, a, "AllReduce", 24, nil) }))
}

func Example() {
	metrics := ringoprom.New(ringoprom.Options{})
	registry := prometheus.NewRegistry() // or prometheus.DefaultRegisterer, which promhttp serves
	registry.MustRegister(metrics)
	comms, err := ringo.OpenLocal(2, ringo.Config{Observer: metrics})
	if err != nil {
		log.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, c := range comms {
		wg.Go(func() {
			defer c.Close()
			for range 3 {
				if err := ringo.AllReduce(c, make([]float32, 1000), ringo.Sum); err != nil {
					log.Fatal(err)
				}
			}
		})
	}
	wg.Wait()
	families, err := registry.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "ringo_bytes_total" {
			for _, m := range f.Metric {
				fmt.Fprintln(os.Stdout, f.GetName(), m.GetCounter().GetValue())
			}
		}
	}
	// Output:
	// ringo_bytes_total 12000
	// ringo_bytes_total 12000
}
