package inproc_test

import (
	"testing"

	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/inproc"
	"github.com/ringo-go/ringo/transport/transporttest"
)

func open(_ testing.TB, cfg transport.Config) transport.Transport { return inproc.New(cfg) }

func spinning(_ testing.TB, cfg transport.Config) transport.Transport {
	cfg.Spin = true
	return inproc.New(cfg)
}

func TestConformance(t *testing.T)         { transporttest.Conformance(t, open) }
func TestConformanceSpinning(t *testing.T) { transporttest.Conformance(t, spinning) }

func BenchmarkYielding(b *testing.B) { transporttest.Bench(b, open) }
func BenchmarkSpinning(b *testing.B) { transporttest.Bench(b, spinning) }
