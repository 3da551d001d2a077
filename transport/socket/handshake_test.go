package socket

import (
	"bytes"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/transport"
)

var someHello = hello{version: version, stream: 1, streams: 2, from: 3, to: 4, limits: transport.Limits{SlotBytes: 5, Slots: 6}, conn: [16]byte{7}, nonce: [32]byte{8}}

func TestHandshake(t *testing.T) {
	key := []byte("key")
	ok := func(hello) verdict { return verdict{} }
	for _, c := range []struct {
		name           string
		dialKey        string
		judge          func(hello) verdict
		dials, listens string // errors
	}{
		{"welcome", "key", ok, "", ""},
		{"other key", "Key", ok, "it does not know the key of this communicator", "EOF"},
		{"wrong rank", "key", func(hello) verdict { return verdict{code: wrongRank} }, "the listener there is not rank 4", "the listener there is not rank 4"},
		{"wrong limits", "key", func(hello) verdict {
			return verdict{wrongLimits, transport.Limits{SlotBytes: 1, Slots: 2}}
		}, "it has queues of {SlotBytes:1 Slots:2} and this rank of {SlotBytes:5 Slots:6}", "it has queues"},
		{"later verdict", "key", func(hello) verdict { return verdict{code: 77} }, "it refused for unknown reason 77", "77"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := net.Pipe()
			got := make(chan error, 1)
			go func() {
				h, err := receive(b, key, c.judge)
				b.Close()
				if err == nil && (h.from != 3 || h.to != 4 || h.stream != 1) {
					t.Errorf("received %+v", h)
				}
				got <- err
			}()
			err := greet(a, []byte(c.dialKey), someHello)
			a.Close()
			says(t, c.dials, err)
			says(t, c.listens, <-got)
		})
	}
}

// says checks an error; "" is none.
func says(t *testing.T, want string, err error) {
	t.Helper()
	if want == "" {
		require.NoError(t, err)
		return
	}
	require.ErrorContains(t, err, want)
}

// TestHandshakeVersions: both sides say what the other speaks.
func TestHandshakeVersions(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	got := make(chan error, 1)
	go func() {
		_, err := receive(b, nil, func(hello) verdict { return verdict{} })
		got <- err
	}()
	h := someHello
	h.version = 9
	_, err := a.Write(h.bytes())
	require.NoError(t, err)
	_, err = a.Read(make([]byte, challengeLen))
	require.NoError(t, err)
	require.EqualError(t, <-got, "it speaks version 9 of the socket protocol and this rank version 1")

	go func() {
		b.Read(make([]byte, helloLen))
		b.Write((&challenge{version: 9}).bytes())
	}()
	require.EqualError(t, greet(a, nil, someHello), "it speaks version 9 of the socket protocol and this rank version 1")
}

// TestHandshakeReplay: a recorded handshake does not open the door again.
func TestHandshakeReplay(t *testing.T) {
	var record []byte
	a, b := net.Pipe()
	go receive(b, nil, func(hello) verdict { return verdict{} })
	require.NoError(t, greet(tap{a, &record}, nil, someHello))

	a, b = net.Pipe()
	defer a.Close()
	got := make(chan error, 1)
	go func() {
		_, err := receive(b, nil, func(hello) verdict { return verdict{} })
		got <- err
	}()
	a.Write(record[:helloLen])
	a.Read(make([]byte, challengeLen))
	a.Write(record[helloLen:])
	require.ErrorContains(t, <-got, "does not know the key")
}

// tap records what is written.
type tap struct {
	net.Conn
	record *[]byte
}

func (t tap) Write(b []byte) (int, error) {
	*t.record = append(*t.record, b...)
	return t.Conn.Write(b)
}

func FuzzHandshakeMessages(f *testing.F) {
	f.Add(someHello.bytes())
	f.Add((&challenge{version: 1}).bytes())
	f.Add((&verdict{1, transport.Limits{SlotBytes: 2, Slots: 3}}).bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := parseHello(b); err == nil {
			again, err := parseHello(h.bytes())
			require.NoError(t, err)
			require.Equal(t, h, again)
		}
		if c, err := parseChallenge(b); err == nil {
			require.Equal(t, b, c.bytes())
		}
		if v, err := parseVerdict(b); err == nil {
			require.Equal(t, b, v.bytes())
		}
	})
}

// FuzzReceive: whatever a stranger says, the listener's side ends, and never
// with a welcome.
func FuzzReceive(f *testing.F) {
	f.Add(someHello.bytes())
	f.Add(append(someHello.bytes(), make([]byte, proofLen)...))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := receive(script{r: bytes.NewReader(b)}, []byte("key"), func(hello) verdict { return verdict{} })
		require.Error(t, err)
	})
}

// script is a connection that says what r holds.
type script struct {
	net.Conn
	r *bytes.Reader
}

func (s script) Read(b []byte) (int, error)  { return s.r.Read(b) }
func (s script) Write(b []byte) (int, error) { return len(b), nil }
func (s script) SetDeadline(time.Time) error { return nil }
