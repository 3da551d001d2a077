// Package ringoprom gives the calls of Ringo's communicators to Prometheus: it is for programs that serve metrics.
//
// A Metrics is a trace.Observer, for ringo.Config.Observer, and a prometheus.Collector. It has
//
//	ringo_calls_in_progress{rank}                                      gauge
//	ringo_calls_total{rank,kind,algorithm,memory,result}               counter, result is ok or error
//	ringo_bytes_total{rank,kind,algorithm,memory}                      counter, of the larger buffer
//	ringo_call_seconds{rank,kind,algorithm,memory}                     histogram
//	ringo_wait_seconds_total{rank,peer}                                counter: how long rank has waited for peer
//
// memory is host or gpu. A call takes some 0.3 µs more, and allocates nothing after the first of its kind.
//
// The trap: series. A process has as many of ringo_wait_seconds_total as it has ranks, times all ranks; above
// Options.MaxPeers there is one for all peers, with an empty label.
package ringoprom

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringo-go/ringo/trace"
)

// Options are for New; the zero Options are right for most.
type Options struct {
	// Labels are put on all metrics, such as the name of a communicator.
	Labels prometheus.Labels
	// Buckets are those of ringo_call_seconds; by default from 1 µs to 17 s, by factors of 4.
	Buckets []float64
	// MaxPeers is the size of a communicator up to which waits are told by peer (default 64).
	MaxPeers int
}

// A Metrics counts calls. It may be the Observer of any number of communicators.
type Metrics struct {
	progress *prometheus.GaugeVec
	calls    *prometheus.CounterVec
	bytes    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	waits    *prometheus.CounterVec
	maxPeers int

	mu    sync.RWMutex
	known map[series]*metrics // guarded by mu
}

// A series is what the calls have in common that one row of metrics counts.
type series struct {
	rank       int
	kind, algo string
	gpu        bool
}

// metrics are those of a series.
type metrics struct {
	of         series
	ok, failed prometheus.Counter
	bytes      prometheus.Counter
	seconds    prometheus.Observer
}

// A lane is what a lane of calls has as its own.
type lane struct {
	progress prometheus.Gauge
	peers    []prometheus.Counter // by rank, or one for all
	last     *metrics
}

// New makes a Metrics, which is still to be registered with Prometheus.
func New(o Options) *Metrics {
	if o.Buckets == nil {
		o.Buckets = prometheus.ExponentialBuckets(1e-6, 4, 13)
	}
	if o.MaxPeers == 0 {
		o.MaxPeers = 64
	}
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "ringo", Name: name, Help: help, ConstLabels: o.Labels}
	}
	of := []string{"rank", "kind", "algorithm", "memory"}
	return &Metrics{
		progress: prometheus.NewGaugeVec(prometheus.GaugeOpts(opts("calls_in_progress", "Calls that have begun and not ended.")), of[:1]),
		calls:    prometheus.NewCounterVec(prometheus.CounterOpts(opts("calls_total", "Calls that have ended.")), append(of[:4:4], "result")),
		bytes:    prometheus.NewCounterVec(prometheus.CounterOpts(opts("bytes_total", "Bytes of the larger buffer of calls.")), of),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "ringo", Name: "call_seconds", Help: "How long calls take.", ConstLabels: o.Labels, Buckets: o.Buckets,
		}, of),
		waits:    prometheus.NewCounterVec(prometheus.CounterOpts(opts("wait_seconds_total", "How long a rank has waited for another.")), []string{"rank", "peer"}),
		maxPeers: o.MaxPeers,
		known:    map[series]*metrics{},
	}
}

// Begin is part of trace.Observer.
func (m *Metrics) Begin(c *trace.Call) {
	l, ok := c.Own.(*lane)
	if !ok {
		l = m.lane(c)
		c.Own = l
	}
	l.progress.Inc()
}

// End is part of trace.Observer.
func (m *Metrics) End(c *trace.Call) {
	l := c.Own.(*lane)
	l.progress.Dec()
	if s := (series{c.Rank, c.Kind, c.Algo, c.GPU}); l.last == nil || l.last.of != s {
		l.last = m.metrics(s)
	}
	x := l.last
	if c.Err != nil {
		x.failed.Inc()
	} else {
		x.ok.Inc()
	}
	x.bytes.Add(float64(c.Bytes))
	x.seconds.Observe(float64(c.End-c.Start) / 1e9)
	for r, d := range c.Waits {
		if d > 0 {
			l.peers[min(r, len(l.peers)-1)].Add(d.Seconds())
		}
	}
}

func (m *Metrics) lane(c *trace.Call) *lane {
	rank := strconv.Itoa(c.Rank)
	l := &lane{progress: m.progress.WithLabelValues(rank)}
	switch {
	case c.GPU: // its waits are not known
	case c.Size > m.maxPeers:
		l.peers = []prometheus.Counter{m.waits.WithLabelValues(rank, "")}
	default:
		for r := range c.Size {
			l.peers = append(l.peers, m.waits.WithLabelValues(rank, strconv.Itoa(r)))
		}
	}
	return l
}

func (m *Metrics) metrics(s series) *metrics {
	m.mu.RLock()
	x := m.known[s]
	m.mu.RUnlock()
	if x != nil {
		return x
	}
	memory := "host"
	if s.gpu {
		memory = "gpu"
	}
	rank := strconv.Itoa(s.rank)
	x = &metrics{
		of: s, ok: m.calls.WithLabelValues(rank, s.kind, s.algo, memory, "ok"), failed: m.calls.WithLabelValues(rank, s.kind, s.algo, memory, "error"),
		bytes: m.bytes.WithLabelValues(rank, s.kind, s.algo, memory), seconds: m.seconds.WithLabelValues(rank, s.kind, s.algo, memory),
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[s] = x
	return x
}

func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.progress, m.calls, m.bytes, m.seconds, m.waits}
}

// Describe is part of prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(ch)
	}
}

// Collect is part of prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(ch)
	}
}
