package ringootel_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/adapters/ringootel"
	"github.com/ringo-go/ringo/trace"
)

// call reports a call to an observer, as a communicator does.
func call(o trace.Observer, c *trace.Call, kind string, bytes int, err error) {
	c.Reset()
	c.Kind, c.Algo, c.Bytes = kind, "ring", bytes
	o.Begin(c)
	c.End, c.Err = c.Start+5_000_000, err
	if len(c.Waits) > 0 {
		c.Waits[len(c.Waits)-1] = 2 * time.Millisecond
	}
	o.End(c)
}

// values are the values of all metrics, by name and attributes.
func values(t testing.TB, reader sdkmetric.Reader) map[string]float64 {
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &all))
	found := map[string]float64{}
	name := func(m metricdata.Metrics, set attribute.Set) string {
		return m.Name + " " + set.Encoded(attribute.DefaultEncoder())
	}
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					found[name(m, p.Attributes)] = float64(p.Value)
				}
			case metricdata.Sum[float64]:
				for _, p := range d.DataPoints {
					found[name(m, p.Attributes)] = p.Value
				}
			case metricdata.Histogram[int64]:
				for _, p := range d.DataPoints {
					found[name(m, p.Attributes)] = float64(p.Sum)
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					found[name(m, p.Attributes)] = p.Sum
				}
			}
		}
	}
	return found
}

func TestMetrics(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	o, err := ringootel.New(ringootel.Options{Meters: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
		MaxPeers: 4})
	require.NoError(t, err)
	a := &trace.Call{Rank: 1, Size: 2, Waits: make([]time.Duration, 2)}
	b := &trace.Call{Comm: "fe", Rank: 7, Size: 9, Waits: make([]time.Duration, 9)}
	g := &trace.Call{Rank: 1, Size: 2, GPU: true}
	call(o, a, "AllReduce", 1000, nil)
	call(o, a, "AllReduce", 24, nil)
	call(o, a, "AllReduce", 8, errors.New("a peer has failed"))
	call(o, b, "AllReduce", 1, nil)
	call(o, g, "AllReduce", 512, nil)
	g.Reset()
	o.Begin(g) // and does not end
	of := func(rank int, memory string) string {
		return fmt.Sprintf("ringo.algorithm=ring,ringo.comm=%d,ringo.kind=AllReduce,ringo.memory=%s,ringo.rank=%d", rank/7,
			memory, rank)
	}
	require.InDeltaMapValues(t, map[string]float64{
		"ringo.call.active ringo.comm=0,ringo.rank=1":                1,
		"ringo.call.active ringo.comm=1,ringo.rank=7":                0,
		"ringo.call.size " + of(1, "host"):                           1024,
		"ringo.call.size error.type=error," + of(1, "host"):          8,
		"ringo.call.size " + of(1, "gpu"):                            512,
		"ringo.call.size " + of(7, "host"):                           1,
		"ringo.call.duration " + of(1, "host"):                       0.01,
		"ringo.call.duration error.type=error," + of(1, "host"):      0.005,
		"ringo.call.duration " + of(1, "gpu"):                        0.005,
		"ringo.call.duration " + of(7, "host"):                       0.005,
		"ringo.wait.duration ringo.comm=0,ringo.peer=1,ringo.rank=1": 0.006,
		"ringo.wait.duration ringo.comm=1,ringo.rank=7":              0.002,
	}, values(t, reader), 1e-9)
}

func TestSpans(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	o, err := ringootel.New(ringootel.Options{Tracer: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))})
	require.NoError(t, err)
	a := &trace.Call{Comm: "c0ffee00", Rank: 1, Size: 2, Waits: make([]time.Duration, 2)}
	call(o, a, "AllReduce", 1000, errors.New("a peer has failed"))
	ended := spans.Ended()
	require.Len(t, ended, 1)
	s := ended[0]
	require.Equal(t, "AllReduce", s.Name())
	require.Equal(t, 5*time.Millisecond, s.EndTime().Sub(s.StartTime()))
	require.Equal(t, sdktrace.Status{Code: codes.Error, Description: "a peer has failed"}, s.Status())
	require.Subset(t, s.Attributes(), []attribute.KeyValue{
		attribute.Int("ringo.rank", 1), attribute.String("ringo.comm", "c0ffee00"), attribute.Int("ringo.size", 1000),
		attribute.Int("ringo.waited_for", 1),
	})
}

func Example() {
	reader := sdkmetric.NewManualReader() // or sdkmetric.NewPeriodicReader(exporter)
	o, err := ringootel.New(ringootel.Options{Meters: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))})
	if err != nil {
		log.Fatal(err)
	}
	comms, err := ringo.OpenLocal(2, ringo.Config{Observer: o})
	if err != nil {
		log.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, c := range comms {
		wg.Go(func() {
			defer c.Close()
			if err := ringo.AllReduce(c, make([]float32, 1000), ringo.Sum); err != nil {
				log.Fatal(err)
			}
		})
	}
	wg.Wait()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		log.Fatal(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if h, ok := m.Data.(metricdata.Histogram[int64]); ok {
			fmt.Println(m.Name, len(h.DataPoints), "ranks,", h.DataPoints[0].Sum, "bytes each")
		}
	}
	// Output: ringo.call.size 2 ranks, 4000 bytes each
}
