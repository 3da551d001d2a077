package transport_test

import (
	"testing"

	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/inproc"
	"github.com/ringo-go/ringo/transport/transporttest"
)

func openInproc(_ testing.TB, cfg transport.Config) transport.Transport { return inproc.New(cfg) }

func spinning(_ testing.TB, cfg transport.Config) transport.Transport {
	cfg.Spin = true
	return inproc.New(cfg)
}

func TestInproc(t *testing.T)         { transporttest.Conformance(t, openInproc) }
func TestInprocSpinning(t *testing.T) { transporttest.Conformance(t, spinning) }

func BenchmarkInproc(b *testing.B)         { transporttest.Bench(b, openInproc) }
func BenchmarkInprocSpinning(b *testing.B) { transporttest.Bench(b, spinning) }
