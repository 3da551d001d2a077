package plugin

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/ringo-go/ringo/transport"
)

// FuzzHear: whatever a peer says on the control stream is bounded and no crash.
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

// FuzzHeader: a header that is accepted is the one that a sender writes, and fits its message.
func FuzzHeader(f *testing.F) {
	for _, h := range []header{{n: 3}, {n: 100, byItself: true, stamp: transport.Stamp{1, 2}}, {}} {
		b := make([]byte, headerLen+h.n)
		h.put(b, 5)
		f.Add(b, uint64(5))
	}
	f.Fuzz(func(t *testing.T, b []byte, slot uint64) {
		const most = 1000
		h, err := parseHeader(b, slot, len(b), most)
		if err != nil {
			return
		}
		again := make([]byte, headerLen)
		h.put(again, slot)
		if !bytes.Equal(again, b[:headerLen]) {
			t.Fatalf("%x is written as %x", b[:headerLen], again)
		}
		switch {
		case h.byItself && len(b) == headerLen && h.n > most, !h.byItself && h.n != len(b)-headerLen:
			t.Fatalf("%d bytes of payload in a message of %d", h.n, len(b))
		}
	})
}

// FuzzExpand: no format of a plugin's log line crashes the host.
func FuzzExpand(f *testing.F) {
	f.Add("NET/IB : %s %-10.3f %*d %lx%%", uint64(7), 1.5)
	f.Add("%", uint64(0), 0.0)
	f.Add("%99999999d", uint64(0), 0.0)
	f.Fuzz(func(t *testing.T, format string, i uint64, x float64) {
		text := func(uintptr) string { return "text" }
		s := expand(format, []uintptr{uintptr(i), 1}, []float64{x}, text)
		if !strings.Contains(format, "%") && s != strings.TrimRight(format, "\n") {
			t.Fatalf("%q became %q", format, s)
		}
	})
}
