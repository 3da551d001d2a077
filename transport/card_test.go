package transport_test

import (
	"testing"

	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/transporttest"
)

func openCard(tb testing.TB, cfg transport.Config) transport.Transport {
	return transporttest.NewCard(cfg, nil)
}

// The Card, which other tests use, passes the suite of placed connections.
func TestCard(t *testing.T) {
	t.Run("host", func(t *testing.T) { transporttest.Placed(t, openCard, transporttest.HostSlots) })
	t.Run("file", func(t *testing.T) { transporttest.Placed(t, openCard, transporttest.FileSlots) })
}
