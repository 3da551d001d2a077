package transport_test

import (
	"errors"
	"testing"

	"github.com/ringo-go/ringo/internal/test/conntest"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/inproc"
	"github.com/ringo-go/ringo/transport/transporttest"
	"github.com/stretchr/testify/require"
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

// Whichever end of a connection fails first, the other does not wait for it, and both errors are returned.
func TestRunEnds(t *testing.T) {
	wrong := errors.New("wrong")
	fails := func() error { return wrong }
	for _, first := range []string{"sender", "receiver"} {
		send, recv := conntest.Pair(t, transport.Limits{SlotBytes: 300, Slots: 4}, inproc.New)
		sends, receives := fails, fails
		if first == "sender" {
			receives = func() error { return conntest.Get(recv, 1, 0) }
		} else {
			sends = func() error { return conntest.PutAll(send, 0, 100, func(int) int { return 1 }) }
		}
		err := conntest.Run(send, recv, sends, receives)
		require.ErrorIs(t, err, wrong, first)
		require.ErrorIs(t, err, transport.ErrClosed, first)
	}
}
