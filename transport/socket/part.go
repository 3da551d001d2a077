package socket

import (
	"encoding/binary"
	"fmt"
)

// protocol is the context of the handshake (see internal/auth). Its number changes with
// the format of streams.
const protocol = "ringo socket 2"

// A part names the stream of a connection that a socket is. It travels with
// the request of the rank that dials.
type part struct {
	conn            [16]byte // random, the same for all streams of a connection
	stream, streams int
}

const partLen = 16 + 2 + 2

func (p *part) bytes() []byte {
	b := append(make([]byte, 0, partLen), p.conn[:]...)
	b = binary.BigEndian.AppendUint16(b, uint16(p.stream))
	return binary.BigEndian.AppendUint16(b, uint16(p.streams))
}

func parsePart(b []byte) (p part, err error) {
	if len(b) != partLen {
		return p, fmt.Errorf("stream named by %d bytes, not %d", len(b), partLen)
	}
	p = part{[16]byte(b), int(binary.BigEndian.Uint16(b[16:])), int(binary.BigEndian.Uint16(b[18:]))}
	if p.streams < 1 || p.streams > maxStreams || p.stream >= p.streams {
		return p, fmt.Errorf("stream %d of %d", p.stream, p.streams)
	}
	return p, nil
}
