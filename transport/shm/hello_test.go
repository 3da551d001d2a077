package shm

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/transport"
)

var (
	testKey       = []byte("key")
	testChallenge = []byte("challenge")
	testHello     = hello{From: 3, To: 4, Slots: 8, SlotBytes: 1 << 17, Nonce: nonce{1, 2, 3}}
)

func TestHello(t *testing.T) {
	good := testHello.marshal(testKey, testChallenge)
	require.Len(t, good, helloSize)
	h, err := parseHello(good, testKey, testChallenge)
	require.NoError(t, err)
	require.Equal(t, testHello, h)

	for i := range good { // any changed byte is found
		bad := append([]byte(nil), good...)
		bad[i] ^= 1
		_, err := parseHello(bad, testKey, testChallenge)
		require.Error(t, err, "byte %d changed", i)
	}
	newer := append([]byte(nil), good...)
	newer[len(magic)-1]++
	_, err = parseHello(newer, testKey, testChallenge)
	require.ErrorContains(t, err, "version 2")
	_, err = parseHello(good, []byte("other"), testChallenge)
	require.ErrorContains(t, err, "key")
	_, err = parseHello(good, testKey, []byte("replayed"))
	require.ErrorContains(t, err, "key")
}

func TestSuits(t *testing.T) {
	cfg := transport.Config{Self: transport.Info{Rank: 4}, Limits: transport.Limits{Slots: 8, SlotBytes: 1 << 17}}
	require.NoError(t, testHello.suits(cfg))
	cfg.Self.Rank = 5
	require.ErrorContains(t, testHello.suits(cfg), "rank 4 was dialled")
	cfg.Self.Rank, cfg.Limits.Slots = 4, 16
	require.ErrorContains(t, testHello.suits(cfg), "8 slots of 131072 bytes")
}

func TestVerdict(t *testing.T) {
	said := []byte("hello")
	answer := func(b []byte) error {
		n, err := textSize(b[:verdictHead])
		require.NoError(t, err)
		require.Len(t, b, verdictHead+n)
		return parseVerdict(b[:verdictHead], b[verdictHead:], testKey, said)
	}
	require.NoError(t, answer(verdict(testKey, said, nil)))
	require.ErrorContains(t, answer(verdict(testKey, said, errors.New("no room"))), "refused: no room")
	require.Error(t, answer(verdict(testKey, said, errors.New(strings.Repeat("x", 1<<17)))))
	require.ErrorContains(t, answer(verdict([]byte("other"), said, nil)), "key")
	_, err := textSize([]byte{0xff, 0xff})
	require.Error(t, err)
}

func FuzzHello(f *testing.F) {
	f.Add(testHello.marshal(testKey, testChallenge))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := parseHello(b, testKey, testChallenge); err == nil {
			require.Equal(t, b, h.marshal(testKey, testChallenge))
		}
	})
}

func FuzzVerdict(f *testing.F) {
	f.Add(verdict(testKey, nil, nil))
	f.Add(verdict(testKey, nil, errors.New("no")))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < verdictHead {
			return
		}
		if n, err := textSize(b); err == nil && n <= len(b)-verdictHead {
			_ = parseVerdict(b[:verdictHead], b[verdictHead:verdictHead+n], testKey, nil)
		}
	})
}
