package verbs

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// A control is the line between the two ends: the TCP connection of the handshake. Messages are rare.
type control struct {
	mu   sync.Mutex // held by writers
	conn net.Conn
	done chan struct{} // closed when nobody listens any more
}

// A message is 11 bytes and a text: kind, rail, count (8, big-endian), length of the text.
type message struct {
	kind  byte
	rail  int
	count uint64
	text  string
}

const (
	// goodbye: the end was closed. count is how many slots were published in all, text why
	// the receiver refuses the connection.
	goodbye byte = 1
	// down: the rail has failed, and this end's queue pair is dead. count is how many slots the
	// receiver has released.
	down byte = 2
	// again: this end has a new queue pair for a rail that both ends had given up. text is its number and the number of
	// its first packet, 4 bytes each, big-endian.
	again byte = 4
	// proved: the rail carries slots again.
	proved byte = 5
	// placed: where the payloads of a placed connection are to be written (see target).
	placed byte = 3

	messageLen = 11
	maxText    = 255
	sayTime    = time.Second
)

// say sends a message. Errors are ignored: a peer that is gone needs no message.
func (l *control) say(m message) {
	m.text = m.text[:min(len(m.text), maxText)]
	b := append(binary.BigEndian.AppendUint64([]byte{m.kind, byte(m.rail)}, m.count), byte(len(m.text)))
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(sayTime))
	_, _ = l.conn.Write(append(b, m.text...))
}

// hear reads the next message.
func (l *control) hear() (m message, err error) {
	var b [messageLen]byte
	if _, err := io.ReadFull(l.conn, b[:]); err != nil {
		return m, err
	}
	text := make([]byte, b[messageLen-1])
	if _, err := io.ReadFull(l.conn, text); err != nil {
		return m, err
	}
	m = message{b[0], int(b[1]), binary.BigEndian.Uint64(b[2:]), string(text)}
	if m.kind < goodbye || m.kind > proved {
		return m, fmt.Errorf("message of unknown kind %d", m.kind)
	}
	return m, nil
}

func (l *control) close() {
	l.conn.Close()
	<-l.done
}
