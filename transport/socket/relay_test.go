package socket

import (
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/relay"
	"github.com/ringo-go/ringo/internal/test/conntest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/transport"
)

// A relayed transport is dialled through a Relay.
type relayed struct {
	*Transport
	relay *relay.Relay
	addr  []byte
}

func (t *relayed) Listen() ([]byte, error) {
	if t.addr != nil {
		return t.addr, nil
	}
	b, err := t.Transport.Listen()
	if err != nil {
		return nil, err
	}
	a, err := parseAddress(b)
	if err != nil {
		return nil, err
	}
	at, err := t.relay.Start(a.TCP[0].At.String())
	if err != nil {
		return nil, err
	}
	a.TCP, a.Unix = []port{{netip.MustParseAddrPort(at), a.TCP[0].Endpoint}}, ""
	t.addr = a.text()
	return t.addr, nil
}

func (t *relayed) Close() error {
	if t.addr != nil {
		defer t.relay.Close()
	}
	return t.Transport.Close()
}

// through sends messages over a connection through a relay within a limit. It returns nil if all arrived, else
// the error.
func through(t *testing.T, bad *relay.Relay, o Options, limit time.Duration, sizes []int) error {
	return exchanged(t, func(cfg transport.Config) transport.Transport {
		return &relayed{Transport: New(cfg, o),
			relay: bad}
	}, limit, sizes)
}

// exchanged sends messages from one of two transports to the other; limit is the deadline of both.
func exchanged(t *testing.T, open func(transport.Config) transport.Transport, limit time.Duration, sizes []int) error {
	var ranks [2]conntest.Rank[transport.Transport]
	for r := range ranks {
		cfg := conntest.Config(r, large)
		cfg.Guard.Begin(limit)
		ranks[r].Transport, ranks[r].Config = open(cfg), cfg
		defer ranks[r].Transport.Close()
	}
	var err error
	ranks[1].Addr, err = ranks[1].Transport.Listen()
	require.NoError(t, err)
	send, err := ranks[0].Dial(&ranks[1])
	if err != nil {
		return fmt.Errorf("dial: %w", err)
	}
	recv, err := ranks[1].Accept(&ranks[0])
	if err != nil {
		return fmt.Errorf("accept: %w", err)
	}
	size := func(i int) int { return sizes[i] }
	return conntest.Run(send, recv, func() error {
		if err := conntest.PutAll(send, 0, len(sizes), size); err != nil {
			return err
		}
		return send.Close()
	}, func() error {
		if err := conntest.GetAll(recv, 0, len(sizes), size); err != nil {
			return err
		}
		if _, _, err := recv.Next(); !errors.Is(err, transport.ErrClosed) {
			return fmt.Errorf("after the last message: %w", err)
		}
		return nil
	})
}

// A network that passes bytes on late and in pieces changes nothing.
func TestRelayed(t *testing.T) {
	var sizes []int
	for i := range 60 {
		sizes = append(sizes, []int{0, 1, 40, minRead - headerLen, 5000, lentBytes, large.SlotBytes}[i*i%7])
	}
	for _, piece := range []int{7, 3000, 1 << 20} {
		for _, o := range []Options{{Streams: 1}, {Streams: 3}, {Streams: 2, TLS: byKey}} {
			t.Run(fmt.Sprintf("pieces of %d, %d streams, TLS %v", piece, o.Streams, o.TLS), func(t *testing.T) {
				sizes := sizes
				if piece < 10 { // each is a system call
					sizes = some
				}
				bad := &relay.Relay{Piece: piece, Delay: 100 * time.Microsecond}
				o.Network, o.IfName = "tcp", "lo"
				require.NoError(t, through(t, bad, o, endsEarly, sizes))
			})
		}
	}
}

// some are the sizes of enough messages to break a connection among them.
var some = []int{0, 1, 40, 41, 300, 2, 3, 1000, 5, 6}

// endsLate is a limit that an exchange may reach, endsEarly one that it may not reach.
const endsLate, endsEarly = 2 * time.Second, 2 * tier.Patience

func faulty(t *testing.T, fault relay.Fault, limit time.Duration) error {
	return through(t, &relay.Relay{First: fault}, Options{Network: "tcp", IfName: "lo"}, limit, some)
}

func faultyTLS(t *testing.T, fault relay.Fault) error {
	return through(t, &relay.Relay{First: fault}, Options{Network: "tcp", IfName: "lo", TLS: byKey},
		tier.Soon(2*endsLate), some) // the handshake computes much
}

// handshakeBytes is about the number of bytes that a dialler sends before the first slot: ID of the
// endpoint, hello, proof and request.
const handshakeBytes = 26 + 1 + len(protocol) + 32 + 32 + 2 + 40

// Wherever a connection is cut, a rank tries again or hears that the peer has gone; it neither
// hangs nor gets bytes that were not sent.
func TestCut(t *testing.T) {
	t.Parallel()
	side := tier.Together(t)
	defer side.Wait()
	for _, back := range []bool{false, true} {
		for at := 0; at < handshakeBytes+1000; at += 1 + at/50 + at%7 {
			side.Run(fmt.Sprintf("at %d, back %v", at, back), func(t *testing.T) {
				err := faulty(t, relay.Fault{Kind: relay.Cut, At: at, Back: back}, endsEarly)
				if err != nil {
					require.ErrorContains(t, err, "the peer has gone")
				}
				switch {
				case !back && at < handshakeBytes/2: // before anything was proved
					require.NoError(t, err)
				case !back && at > handshakeBytes+100: // among the slots
					require.Error(t, err)
				}
			})
		}
	}
}

// A peer that falls silent is waited for until the deadline, which is an error.
func TestHalfOpen(t *testing.T) {
	at := handshakeBytes + 200
	err := faulty(t, relay.Fault{Kind: relay.Half, At: at}, endsLate/4)
	require.ErrorIs(t, err, fifo.ErrDeadline)
}

// A byte that changes on the way is found in the handshake, and in the fields of headers whose value
// is known beforehand; a changed payload is not found (see the package's trap).
func TestCorrupt(t *testing.T) {
	t.Parallel()
	side := tier.Together(t)
	defer side.Wait()
	for _, back := range []bool{false, true} {
		for at := 0; at < 26+1+len(protocol)+32+32; at += 1 + at%5 {
			side.Run(fmt.Sprintf("at %d, back %v", at, back), func(t *testing.T) {
				err := faulty(t, relay.Fault{Kind: relay.Corrupt, At: at, Back: back}, tier.Soon(endsLate))
				if err != nil && !errors.Is(err, fifo.ErrDeadline) {
					require.Regexp(t, "dial:", err.Error())
				}
			})
		}
	}
}

// Under TLS every byte that changes is found, wherever it is: a connection that is not made yet is
// tried again, and one that is made breaks. Nothing arrives that was not sent.
func TestCorruptTLS(t *testing.T) {
	tier.Long(t)
	t.Parallel()
	const proved = 2200 // bytes of both handshakes that the dialler sends, about
	step := func(at int) int {
		n := 9 + at/25 + at%7
		if at < proved {
			n *= tier.Count(3, 1)
		}
		return n
	}
	var tampered atomic.Int32
	side := tier.Together(t)
	for _, back := range []bool{false, true} {
		for at := 3; at < proved+1500; at += step(at) {
			side.Run(fmt.Sprintf("at %d, back %v", at, back), func(t *testing.T) {
				err := faultyTLS(t, relay.Fault{Kind: relay.Corrupt, At: at, Back: back})
				if !back && at > proved {
					require.Error(t, err)
				}
				if _, ok := errors.AsType[*TamperedError](err); ok {
					tampered.Add(1)
				}
			})
		}
	}
	side.Wait()
	// Where the length of a record was changed the receiver may wait for more, until the sender has gone.
	require.Greater(t, tampered.Load(), int32(4))
}
