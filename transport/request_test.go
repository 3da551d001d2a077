package transport_test

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/auth"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/listen"
)

// A request travels whole, and a rank takes only requests that name this rank and its limits.
func TestRequest(t *testing.T) {
	limits := transport.Limits{Slots: 8, SlotBytes: 1 << 30}
	cfg := transport.Config{Self: transport.Info{Rank: 3}, Limits: limits, Key: []byte("a secret of thirty-two bytes: ok")}
	came := make(chan *listen.Request, 1)
	// listening is an Endpoint of a rank with cfg.
	listening := func(cfg transport.Config) *listen.Endpoint {
		entered := make(chan *listen.Endpoint, 1)
		open := func() (net.Listener, string, error) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			return l, "", err
		}
		p, err := listen.Enter("request", open, nil, nil, func(c net.Conn) {
			defer c.Close()
			p := <-entered
			entered <- p
			if r, err := listen.Answer(c, p, &cfg, "test", accepts); err == nil {
				came <- r
			}
		})
		require.NoError(t, err)
		entered <- p
		t.Cleanup(func() { p.Shut(); p.Wait() })
		return p
	}
	dial := func(p *listen.Endpoint, r listen.Request) error {
		c, err := listen.Dial(t.Context(), listen.Target{Network: "tcp", Addr: p.Addr()}, cfg.Key, "test", &r, nil)
		if err == nil {
			c.Close()
		}
		return err
	}
	here := listening(cfg)
	r := listen.Request{From: 70000, To: 3, Limits: limits, Rest: []byte("more")}
	bare := listen.Request{From: 1, To: 3, Limits: limits, Rest: []byte{}}
	for _, r := range []listen.Request{r, bare} {
		require.NoError(t, dial(here, r))
		require.Equal(t, r, *<-came)
	}

	c, err := net.Dial("tcp", doorOf(here))
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, strings.TrimPrefix(here.Addr(), doorOf(here)+"#"))
	require.NoError(t, err)
	_, err = io.ReadFull(c, make([]byte, 1))
	require.NoError(t, err)
	answer, err := auth.Call(c, cfg.Key, "test", make([]byte, 19))
	require.NoError(t, err)
	require.Equal(t, "request of 19 bytes", string(answer))

	cfg.Limits.Slots = 4
	err = dial(listening(cfg), r)
	refusal := new(listen.Refusal)
	require.ErrorAs(t, err, &refusal)
	require.EqualError(t, refusal,
		"refused: rank 70000 has queues of 8 slots of 1073741824 bytes, rank 3 of 4 slots of 1073741824 bytes: set the same "+
			"everywhere")
	cfg.Self.Rank = 2
	err = dial(listening(cfg), r)
	require.ErrorContains(t, err, "refused: rank 3 was dialled, but this is rank 2")
	require.Empty(t, came)
}
