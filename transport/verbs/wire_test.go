package verbs

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/ibverbs"
)

// A peer's hello is checked before a queue pair is connected by it.
func TestMalformedHello(t *testing.T) {
	good := func() *hello { return &hello{Addr: 1, Rails: []railHello{{Port: "fx0:1", MTU: 3, QPN: 1}, {}}} }
	read := func(h *hello) (*hello, error) {
		b, err := json.Marshal(h)
		require.NoError(t, err)
		return readHello(bytes.NewReader(append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)))
	}
	for name, change := range map[string]func(h *hello){
		"as it is":  func(*hello) {},
		"least MTU": func(h *hello) { h.Rails[0].MTU = 1 },
		"largest": func(h *hello) {
			h.Rails[0] = railHello{MTU: 5, QPN: 1<<24 - 1, PSN: 1<<24 - 1, GIDType: ibverbs.GIDRoCE2}
		},
		"most rails": func(h *hello) { h.Rails = make([]railHello, maxRails+1) },
		"refused":    func(h *hello) { h.Refused, h.Rails = "no", nil },
	} {
		h := good()
		change(h)
		got, err := read(h)
		require.NoError(t, err, name)
		require.Equal(t, h, got, name)
	}
	for want, change := range map[string]func(h *hello){
		"malformed hello: 0 rails":            func(h *hello) { h.Rails = nil },
		"malformed hello: 6 rails":            func(h *hello) { h.Rails = make([]railHello, maxRails+2) },
		"malformed hello: rail 0 is {Port:a ": func(h *hello) { h.Rails[0] = railHello{Port: "a"} },
		"malformed hello: rail 0 is {Port:b ": func(h *hello) { h.Rails[0] = railHello{Port: "b", MTU: 6} },
		"malformed hello: rail 0 is {Port:c ": func(h *hello) { h.Rails[0] = railHello{Port: "c", MTU: 3, QPN: 1 << 24} },
		"malformed hello: rail 1 is {Port:d ": func(h *hello) { h.Rails[1] = railHello{Port: "d", MTU: 3, PSN: 1 << 24} },
		"malformed hello: rail 1 is {Port:e ": func(h *hello) {
			h.Rails[1] = railHello{Port: "e", MTU: 3,
				GIDType: ibverbs.GIDRoCE2 + 1}
		},
	} {
		h := good()
		change(h)
		_, err := read(h)
		require.ErrorContains(t, err, want)
	}
	_, err := readHello(strings.NewReader("\x00\x01{"))
	require.ErrorContains(t, err, "malformed hello: unexpected end of JSON input")
	_, err = readHello(strings.NewReader("\x00\x03{"))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	_, err = readHello(strings.NewReader(""))
	require.ErrorIs(t, err, io.EOF)

	long := good()
	long.Rails[0].Port = strings.Repeat("x", 1<<16)
	require.ErrorContains(t, writeHello(io.Discard, long), "hello of 65")
}

// A message has the length that it tells and a known kind, and its text is cut to maxText.
func TestMessages(t *testing.T) {
	hear := func(send func(c net.Conn)) (message, error) {
		a, b := net.Pipe()
		defer b.Close()
		go func() {
			defer a.Close()
			send(a)
		}()
		return (&control{conn: b}).hear()
	}
	for kind := goodbye; kind <= proved; kind++ {
		m := message{kind: kind, rail: 3, count: 1<<40 + 5, text: "why"}
		got, err := hear(func(c net.Conn) { (&control{conn: c}).say(m) })
		require.NoError(t, err)
		require.Equal(t, m, got)
	}
	got, err := hear(func(c net.Conn) { (&control{conn: c}).say(message{kind: down, text: strings.Repeat("x", 300)}) })
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("x", 255), got.text)
	for bytes, want := range map[string]string{
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00":  "message of unknown kind 0",
		"\x06\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00":  "message of unknown kind 6",
		"\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00":      io.ErrUnexpectedEOF.Error(),
		"\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02x": io.ErrUnexpectedEOF.Error(),
	} {
		_, err := hear(func(c net.Conn) { _, _ = io.WriteString(c, bytes) })
		require.EqualError(t, err, want)
	}
}

// A target has a key for each rail.
func TestTargetKeys(t *testing.T) {
	m := message{kind: placed, count: 1 << 40, text: "\x00\x00\x00\x01\x00\x00\x01\x00"}
	p, err := parseTarget(m, 2)
	require.NoError(t, err)
	require.Equal(t, &target{addr: 1 << 40, keys: []uint32{1, 256}}, p)
	for _, rails := range []int{1, 3} {
		_, err = parseTarget(m, rails)
		require.ErrorContains(t, err, "malformed target: 8 bytes for ")
	}
	m.text = m.text[:7]
	_, err = parseTarget(m, 2)
	require.EqualError(t, err, "malformed target: 7 bytes for 2 rails")
}
