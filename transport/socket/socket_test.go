package socket

import (
	"testing"

	"github.com/ringo-go/ringo/internal/secure"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/transporttest"
)

func open(o Options) transporttest.Open {
	return func(_ testing.TB, cfg transport.Config) transport.Transport { return New(cfg, o) }
}

var loose = transporttest.Options{Loose: true}

func TestConformance(t *testing.T) {
	type test struct {
		name string
		o    Options
	}
	for _, c := range tier.Some(2, []test{ // TCP alone is in the full tier
		{"automatic", Options{}},
		{"tcp", Options{Network: "tcp", IfName: "lo"}},
		{"tls", Options{Network: "tcp", IfName: "lo", Streams: 3, TLS: byKey}},
	}) {
		t.Run(c.name, func(t *testing.T) {
			allowed := loose
			if c.o.TLS != nil {
				allowed.Allocs = 2 // crypto/tls makes a reader for each record
			}
			transporttest.Conformance(t, open(c.o), allowed)
		})
	}
}

// byKey is TLS without certificates.
var byKey = func() *secure.Config {
	c, err := secure.New("", "", "")
	if err != nil {
		panic(err)
	}
	return c
}()

func TestProcessesUnix(t *testing.T) { transporttest.Processes(t, open(Options{Network: "unix"})) }
func TestProcessesTCP(t *testing.T)  { transporttest.Processes(t, open(Options{Network: "tcp"})) }
func TestProcessesTLS(t *testing.T) {
	transporttest.Processes(t, open(Options{Network: "tcp", TLS: byKey}))
}

func BenchmarkUnix(b *testing.B) { transporttest.Bench(b, open(Options{Network: "unix"})) }
func BenchmarkTCP(b *testing.B)  { transporttest.Bench(b, open(Options{Network: "tcp"})) }

func BenchmarkProcessesUnix(b *testing.B) {
	transporttest.BenchProcesses(b, open(Options{Network: "unix"}))
}
func BenchmarkTLS(b *testing.B) { transporttest.Bench(b, open(Options{Network: "tcp", TLS: byKey})) }

func BenchmarkProcessesTCP(b *testing.B) {
	transporttest.BenchProcesses(b, open(Options{Network: "tcp"}))
}
