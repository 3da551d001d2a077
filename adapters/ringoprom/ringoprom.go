// Package ringoprom reports the calls of Ringo's communicators to Prometheus. It is for programs that serve metrics.
//
// A Metrics is a trace.Observer, for ringo.Config.Observer, and a prometheus.Collector. It has
//
//	ringo_calls_in_progress{comm,rank}                                 gauge
//	ringo_calls_total{comm,rank,kind,algorithm,memory,result}          counter, result is ok or error
//	ringo_bytes_total{comm,rank,kind,algorithm,memory}                 counter, of the larger buffer
//	ringo_call_seconds{comm,rank,kind,algorithm,memory}                histogram
//	ringo_wait_seconds_total{comm,rank,peer}                           counter: how long rank has waited for peer
//
// comm is the number of a communicator, in the order of their first calls: 0 is the first one that was used.
// Communicators beyond Options.MaxComms share "more". memory is host or gpu. A call takes about 0.3 µs more, and
// allocates nothing after the first of its kind.
//
// The trap is the number of series. ringo_wait_seconds_total has for each communicator a series for each pair of one of
// the process' ranks and any rank. For communicators of more than Options.MaxPeers ranks, and for "more", a rank has
// one series for all peers, with an empty label.
package ringoprom

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringo-go/ringo/adapters/internal/series"
	"github.com/ringo-go/ringo/trace"
)

// Options are for New; the zero Options are right for most.
type Options struct {
	// Labels are put on all metrics, such as the name of the job.
	Labels prometheus.Labels
	// Buckets are the bounds of ringo_call_seconds, in seconds (default 1 µs to 17 s, by factors of 4).
	Buckets []float64
	// MaxPeers is the greatest size of a communicator whose waits are counted by peer (default 64).
	MaxPeers int
	// MaxComms is the number of communicators that have metrics of their own (default 8).
	MaxComms int
}

// A Metrics counts calls. It may be the Observer of any number of communicators.
type Metrics struct {
	progress *prometheus.GaugeVec
	calls    *prometheus.CounterVec
	bytes    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	waits    *prometheus.CounterVec
	maxPeers int
	comms    series.Comms
	known    series.Table[metrics]
}

// metrics are the metrics of a series.
type metrics struct {
	of         series.Series
	ok, failed prometheus.Counter
	bytes      prometheus.Counter
	seconds    prometheus.Observer
}

// A track is kept in trace.Call.Own, for the calls of one Track.
type track struct {
	comm     string
	progress prometheus.Gauge
	peers    []prometheus.Counter // by rank, or one for all
	last     *metrics
}

// New makes a Metrics. The caller registers it with Prometheus.
func New(o Options) *Metrics {
	if o.Buckets == nil {
		o.Buckets = prometheus.ExponentialBuckets(1e-6, 4, 13)
	}
	if o.MaxPeers == 0 {
		o.MaxPeers = 64
	}
	if o.MaxComms == 0 {
		o.MaxComms = 8
	}
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "ringo", Name: name, Help: help, ConstLabels: o.Labels}
	}
	of := []string{"comm", "rank", "kind", "algorithm", "memory"}
	return &Metrics{
		progress: prometheus.NewGaugeVec(prometheus.GaugeOpts(opts("calls_in_progress",
			"Calls that have begun and not ended.")), of[:2]),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts(opts("calls_total", "Calls that have ended.")),
			append(of[:5:5], "result")),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts(opts("bytes_total",
			"Bytes of the larger buffer of calls.")), of),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "ringo", Name: "call_seconds", Help: "How long calls take.", ConstLabels: o.Labels, Buckets: o.Buckets,
		}, of),
		waits: prometheus.NewCounterVec(prometheus.CounterOpts(opts("wait_seconds_total",
			"How long a rank has waited for another.")), []string{"comm", "rank", "peer"}),
		maxPeers: o.MaxPeers,
		comms:    series.Comms{Most: o.MaxComms},
	}
}

// Begin is part of trace.Observer.
func (m *Metrics) Begin(c *trace.Call) {
	l, ok := c.Own.(*track)
	if !ok {
		l = m.track(c)
		c.Own = l
	}
	l.progress.Inc()
}

// End is part of trace.Observer.
func (m *Metrics) End(c *trace.Call) {
	l := c.Own.(*track)
	l.progress.Dec()
	if s := series.Of(c, l.comm); l.last == nil || l.last.of != s {
		l.last = m.known.Get(s, m.metrics)
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

func (m *Metrics) track(c *trace.Call) *track {
	comm, rank := m.comms.Name(c), strconv.Itoa(c.Rank)
	return &track{
		comm:     comm,
		progress: m.progress.WithLabelValues(comm, rank),
		peers: series.Peers(c, comm, m.maxPeers,
			func(peer string) prometheus.Counter { return m.waits.WithLabelValues(comm, rank, peer) }),
	}
}

// metrics makes the metrics of a series.
func (m *Metrics) metrics(s series.Series) *metrics {
	of := []string{s.Comm, strconv.Itoa(s.Rank), s.Kind, s.Algo, s.Memory()}
	return &metrics{
		of: s, ok: m.calls.WithLabelValues(append(of, "ok")...), failed: m.calls.WithLabelValues(append(of, "error")...),
		bytes: m.bytes.WithLabelValues(of...), seconds: m.seconds.WithLabelValues(of...),
	}
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
