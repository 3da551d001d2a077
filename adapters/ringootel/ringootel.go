// Package ringootel reports the calls of Ringo's communicators to OpenTelemetry, as metrics, as spans or both. It is
// for programs that export telemetry.
//
// New makes a trace.Observer for ringo.Config.Observer. Its instruments are
//
//	ringo.call.duration   histogram, s        by ringo.comm, ringo.rank, ringo.kind, ringo.algorithm, ringo.memory, error.type
//	ringo.call.size       histogram, By       the same; of the larger buffer
//	ringo.call.active     up-down counter     by ringo.comm, ringo.rank: calls that have begun and not ended
//	ringo.wait.duration   counter, s          by ringo.comm, ringo.rank, ringo.peer: how long rank has waited for peer
//
// ringo.comm is the number of a communicator, in the order of their first calls; communicators beyond Options.MaxComms
// share "more", without ringo.peer. In spans ringo.comm is the communicator's ID. ringo.memory is host or gpu;
// error.type is "error" for calls that failed, and absent otherwise.
//
// The trap: a span takes some µs for each call and allocates, so spans are for programs with few calls. Metrics take
// less than 1 µs a call.
package ringootel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/ringo-go/ringo/adapters/internal/series"
	"github.com/ringo-go/ringo/trace"
)

// scope is the name of the instrumentation.
const scope = "github.com/ringo-go/ringo/adapters/ringootel"

// Options are for New.
type Options struct {
	Meters metric.MeterProvider     // nil for no metrics
	Tracer oteltrace.TracerProvider // nil for no spans
	// Context is the parent of spans: they are children of the span in it, if there is one (default context.Background).
	Context context.Context
	// MaxPeers is the greatest size of a communicator whose waits are counted by peer (default 64).
	MaxPeers int
	// MaxComms is the number of communicators that have metrics of their own (default 8).
	MaxComms int
}

type observer struct {
	Options
	tracer   oteltrace.Tracer
	duration metric.Float64Histogram
	size     metric.Int64Histogram
	active   metric.Int64UpDownCounter
	waits    metric.Float64Counter
	comms    series.Comms
	known    series.Table[attributes]
}

// attributes are the attributes of a series, for spans and for metrics.
type attributes struct {
	of         series.Series
	list       []attribute.KeyValue
	ok, failed []metric.RecordOption
}

// A track is kept in trace.Call.Own, for the calls of one Track.
type track struct {
	comm  string
	rank  []metric.AddOption
	peers [][]metric.AddOption // by rank, or one for all
	last  *attributes
}

// New makes an Observer, which any number of communicators may share. The error is of making the instruments.
func New(o Options) (trace.Observer, error) {
	if o.Context == nil {
		o.Context = context.Background()
	}
	if o.MaxPeers == 0 {
		o.MaxPeers = 64
	}
	if o.MaxComms == 0 {
		o.MaxComms = 8
	}
	x := &observer{Options: o, comms: series.Comms{Most: o.MaxComms}}
	if o.Tracer != nil {
		x.tracer = o.Tracer.Tracer(scope)
	}
	if o.Meters == nil {
		return x, nil
	}
	m := o.Meters.Meter(scope)
	var errs [4]error
	x.duration, errs[0] = m.Float64Histogram("ringo.call.duration", metric.WithUnit("s"),
		metric.WithDescription("How long calls take."),
		metric.WithExplicitBucketBoundaries(1e-6, 4e-6, 1.6e-5, 6.4e-5, 2.56e-4, 1.024e-3, 4.096e-3, 1.6384e-2, 6.5536e-2,
			0.262, 1.05, 4.2, 16.8))
	x.size, errs[1] = m.Int64Histogram("ringo.call.size", metric.WithUnit("By"),
		metric.WithDescription("Bytes of the larger buffer of calls."),
		metric.WithExplicitBucketBoundaries(8, 64, 512, 4096, 32768, 262144, 2097152, 16777216, 134217728, 1073741824))
	x.active, errs[2] = m.Int64UpDownCounter("ringo.call.active",
		metric.WithDescription("Calls that have begun and not ended."))
	x.waits, errs[3] = m.Float64Counter("ringo.wait.duration", metric.WithUnit("s"),
		metric.WithDescription("How long a rank has waited for another."))
	return x, errors.Join(errs[:]...)
}

// Begin is part of trace.Observer.
func (x *observer) Begin(c *trace.Call) {
	l, ok := c.Own.(*track)
	if !ok {
		l = x.track(c)
		c.Own = l
	}
	if x.active != nil {
		x.active.Add(x.Context, 1, l.rank...)
	}
}

// End is part of trace.Observer.
func (x *observer) End(c *trace.Call) {
	l := c.Own.(*track)
	if s := series.Of(c, l.comm); l.last == nil || l.last.of != s {
		l.last = x.known.Get(s, newAttributes)
	}
	if x.tracer != nil {
		x.span(c, l.last)
	}
	if x.active == nil {
		return
	}
	x.active.Add(x.Context, -1, l.rank...)
	with := l.last.ok
	if c.Err != nil {
		with = l.last.failed
	}
	x.duration.Record(x.Context, float64(c.End-c.Start)/1e9, with...)
	x.size.Record(x.Context, int64(c.Bytes), with...)
	for r, d := range c.Waits {
		if d > 0 {
			x.waits.Add(x.Context, d.Seconds(), l.peers[min(r, len(l.peers)-1)]...)
		}
	}
}

// span exports the span of a call that has ended.
func (x *observer) span(c *trace.Call, a *attributes) {
	_, s := x.tracer.Start(x.Context, c.Kind, oteltrace.WithTimestamp(time.Unix(0, c.Start)),
		oteltrace.WithAttributes(a.list...))
	s.SetAttributes(attribute.String("ringo.comm", c.Comm), attribute.Int64("ringo.number", int64(c.Number)),
		attribute.Int("ringo.size", c.Bytes))
	worst := -1
	for r, d := range c.Waits {
		if d > 0 && (worst < 0 || d > c.Waits[worst]) {
			worst = r
		}
	}
	if worst >= 0 {
		s.SetAttributes(attribute.Int("ringo.waited_for", worst),
			attribute.Float64("ringo.waited_seconds", c.Waits[worst].Seconds()))
	}
	if c.Err != nil {
		s.SetStatus(codes.Error, c.Err.Error())
	}
	s.End(oteltrace.WithTimestamp(time.Unix(0, c.End)))
}

func (x *observer) track(c *trace.Call) *track {
	name := x.comms.Name(c)
	comm, rank := attribute.String("ringo.comm", name), attribute.Int("ringo.rank", c.Rank)
	with := func(list ...attribute.KeyValue) []metric.AddOption {
		return []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(list...))}
	}
	return &track{comm: name, rank: with(comm, rank),
		peers: series.Peers(c, name, x.MaxPeers, func(peer string) []metric.AddOption {
			if peer == "" {
				return with(comm, rank)
			}
			return with(comm, rank, attribute.String("ringo.peer", peer))
		})}
}

func newAttributes(s series.Series) *attributes {
	list := []attribute.KeyValue{
		attribute.String("ringo.comm", s.Comm), attribute.Int("ringo.rank", s.Rank), attribute.String("ringo.kind", s.Kind),
		attribute.String("ringo.algorithm", s.Algo), attribute.String("ringo.memory", s.Memory()),
	}
	failed := append(list[:len(list):len(list)], attribute.String("error.type", "error"))
	return &attributes{of: s, list: list,
		ok:     []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(list...))},
		failed: []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(failed...))},
	}
}
