package plugin

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/ringo-go/ringo/transport"
)

// FuzzHear: no bytes on the control stream crash hear, and messages are bounded.
func FuzzHear(f *testing.F) {
	f.Add([]byte{sayGoodbye, 0, 8, 0, 0, 0, 0, 0, 0, 0, 7})
	f.Add([]byte{sayHandle, 0, 132})
	f.Add([]byte{sayRefused, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		kind, body, err := hear(bytes.NewReader(b))
		if err != nil {
			return
		}
		want := append(binary.BigEndian.AppendUint16([]byte{kind}, uint16(len(body))), body...)
		if !bytes.HasPrefix(b, want) || len(body) > maxSaid {
			t.Fatalf("%x was heard as %q %x", b, kind, body)
		}
	})
}

// FuzzHeader: a header that is accepted is one that a sender writes, and fits the payload that came with it.
func FuzzHeader(f *testing.F) {
	for _, h := range []header{{n: 3}, {n: 100, stamp: transport.Stamp{1, 2}}, {}} {
		b := make([]byte, headerLen)
		h.put(b, 5)
		f.Add(b, uint64(5), h.n)
	}
	f.Fuzz(func(t *testing.T, b []byte, slot uint64, payload int) {
		if len(b) < headerLen || payload < 0 { // see recvConn.come
			return
		}
		h, err := parseHeader(b, slot, payload)
		if err != nil {
			return
		}
		again := make([]byte, headerLen)
		h.put(again, slot)
		if !bytes.Equal(again, b[:headerLen]) || h.n != payload {
			t.Fatalf("%x with %d bytes is written as %x", b[:headerLen], payload, again)
		}
	})
}

// FuzzExpand: no format of a plugin's log line crashes the host.
func FuzzExpand(f *testing.F) {
	f.Add("NET/IB : %s %-10.3f %*d %lx%%", uint64(7), 1.5)
	f.Add("%", uint64(0), 0.0)
	f.Add("%99999999d", uint64(0), 0.0)
	f.Fuzz(func(t *testing.T, format string, i uint64, x float64) {
		text := func(_ uintptr, most int) string { return "text"[:min(most, 4)] }
		s := expand(format, []uintptr{uintptr(i), 1}, []float64{x}, text)
		if len(s) > maxText {
			t.Fatalf("%q became %d bytes", format, len(s))
		}
		if !strings.Contains(format, "%") && len(format) <= maxText && s != strings.TrimRight(format, "\n") {
			t.Fatalf("%q became %q", format, s)
		}
	})
}
