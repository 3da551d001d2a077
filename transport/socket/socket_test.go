package socket

import (
	"testing"

	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/transporttest"
)

func open(o Options) transporttest.Open {
	return func(_ testing.TB, cfg transport.Config) transport.Transport { return New(cfg, o) }
}

var loose = transporttest.Options{Loose: true}

func TestConformance(t *testing.T) {
	for name, o := range map[string]Options{
		"automatic": {},
		"tcp":       {Network: "tcp", IfName: "lo"},
		"striped":   {Network: "tcp", IfName: "lo", Streams: 3},
	} {
		t.Run(name, func(t *testing.T) { transporttest.Conformance(t, open(o), loose) })
	}
}

func TestProcessesUnix(t *testing.T) { transporttest.Processes(t, open(Options{Network: "unix"})) }
func TestProcessesTCP(t *testing.T)  { transporttest.Processes(t, open(Options{Network: "tcp"})) }

func BenchmarkUnix(b *testing.B) { transporttest.Bench(b, open(Options{Network: "unix"})) }
func BenchmarkTCP(b *testing.B)  { transporttest.Bench(b, open(Options{Network: "tcp"})) }

func BenchmarkProcessesUnix(b *testing.B) {
	transporttest.BenchProcesses(b, open(Options{Network: "unix"}))
}
func BenchmarkProcessesTCP(b *testing.B) {
	transporttest.BenchProcesses(b, open(Options{Network: "tcp"}))
}
