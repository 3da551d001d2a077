package listen

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/transport"
)

// A request travels whole, and a rank takes only requests that name this rank and its limits.
func TestRequest(t *testing.T) {
	limits := transport.Limits{Slots: 8, SlotBytes: 1 << 30}
	r := Request{From: 70000, To: 3, Limits: limits, Rest: []byte("more")}
	got, err := parseRequest(r.bytes())
	require.NoError(t, err)
	require.Equal(t, r, got)
	bare := Request{From: 1, To: 2, Limits: limits, Rest: []byte{}}
	got, err = parseRequest(bare.bytes())
	require.NoError(t, err)
	require.Equal(t, bare, got)
	_, err = parseRequest(bare.bytes()[:requestLen-1])
	require.EqualError(t, err, "request of 19 bytes")

	cfg := &transport.Config{Self: transport.Info{Rank: 3}, Limits: limits}
	require.NoError(t, r.suits(cfg))
	cfg.Limits.Slots = 4
	require.EqualError(t, r.suits(cfg),
		"rank 70000 has queues of 8 slots of 1073741824 bytes, rank 3 of 4 slots of 1073741824 bytes: set the same "+
			"everywhere")
	cfg.Self.Rank = 2
	require.EqualError(t, r.suits(cfg), "rank 3 was dialled, but this is rank 2")
	require.EqualError(t, &Refusal{"why"}, "refused: why")
}
