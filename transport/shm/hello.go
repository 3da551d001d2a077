package shm

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/transport"
)

// The handshake on the socket. Numbers are little-endian; a MAC is HMAC-SHA256
// with the key of the communicator.
//
//	to the dialler:  challenge  magic 8, nonce 32
//	to the listener: hello      magic 8, from u32, to u32, slots u32, slot bytes u64, nonce 32,
//	                            MAC of challenge and hello; with it comes the descriptor
//	to the dialler:  verdict    length of text u16, MAC of hello and text, text; no text is a yes
//
// A hello with a wrong MAC gets no answer.

const (
	magic     = "ringoSM\x01" // the last byte is the version
	nonceSize = 32
	maxText   = 1024
)

type nonce [nonceSize]byte

// hello is what a dialler says of the connection that it wants.
type hello struct {
	From, To  uint32
	Slots     uint32
	SlotBytes uint64
	Nonce     nonce
}

const (
	challengeSize = len(magic) + nonceSize
	helloBody     = len(magic) + 3*4 + 8 + nonceSize
	helloSize     = helloBody + sha256.Size
	verdictHead   = 2 + sha256.Size
)

func mac(key []byte, purpose string, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(purpose))
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// marshal is the hello with its MAC, in answer to challenge.
func (h hello) marshal(key []byte, challenge []byte) []byte {
	b := append(make([]byte, 0, helloSize), magic...)
	b = binary.LittleEndian.AppendUint32(b, h.From)
	b = binary.LittleEndian.AppendUint32(b, h.To)
	b = binary.LittleEndian.AppendUint32(b, h.Slots)
	b = binary.LittleEndian.AppendUint64(b, h.SlotBytes)
	b = append(b, h.Nonce[:]...)
	return append(b, mac(key, "dial", challenge, b)...)
}

// parseHello believes only who knows the key.
func parseHello(b, key, challenge []byte) (h hello, err error) {
	switch {
	case len(b) != helloSize:
		return h, fmt.Errorf("hello of %d bytes, not %d", len(b), helloSize)
	case string(b[:len(magic)-1]) != magic[:len(magic)-1]:
		return h, errors.New("not a hello")
	case b[len(magic)-1] != magic[len(magic)-1]:
		return h, fmt.Errorf("version %d of the protocol, not %d: use one release everywhere", b[len(magic)-1], magic[len(magic)-1])
	case !hmac.Equal(b[helloBody:], mac(key, "dial", challenge, b[:helloBody])):
		return h, errors.New("it does not know the key of this communicator")
	}
	b = b[len(magic):]
	h.From = binary.LittleEndian.Uint32(b)
	h.To = binary.LittleEndian.Uint32(b[4:])
	h.Slots = binary.LittleEndian.Uint32(b[8:])
	h.SlotBytes = binary.LittleEndian.Uint64(b[12:])
	copy(h.Nonce[:], b[20:])
	return h, nil
}

// suits says why a rank with cfg does not want the connection, nil if it does.
func (h hello) suits(cfg transport.Config) error {
	switch {
	case int64(h.To) != int64(cfg.Self.Rank):
		return fmt.Errorf("rank %d was dialled, but this is rank %d", h.To, cfg.Self.Rank)
	case uint64(h.Slots) != uint64(cfg.Limits.Slots) || h.SlotBytes != uint64(cfg.Limits.SlotBytes):
		return fmt.Errorf("rank %d has queues of %d slots of %d bytes, rank %d of %d slots of %d bytes: set the same everywhere",
			h.From, h.Slots, h.SlotBytes, cfg.Self.Rank, cfg.Limits.Slots, cfg.Limits.SlotBytes)
	}
	return nil
}

// verdict is the answer to hello, a refusal unless err is nil.
func verdict(key, hello []byte, err error) []byte {
	text := ""
	if err != nil {
		text = err.Error()
		text = text[:min(len(text), maxText)]
	}
	b := binary.LittleEndian.AppendUint16(nil, uint16(len(text)))
	b = append(b, mac(key, "verdict", hello, []byte(text))...)
	return append(b, text...)
}

// textSize is how long the text is that comes after the head of a verdict.
func textSize(head []byte) (int, error) {
	n := int(binary.LittleEndian.Uint16(head))
	if n > maxText {
		return 0, fmt.Errorf("answer of %d bytes: not of this protocol", n)
	}
	return n, nil
}

// parseVerdict is nil if the listener knows the key and takes the connection.
func parseVerdict(head, text, key, hello []byte) error {
	if !hmac.Equal(head[2:], mac(key, "verdict", hello, text)) {
		return errors.New("the listener does not know the key of this communicator")
	}
	if len(text) > 0 {
		return fmt.Errorf("refused: %s", text)
	}
	return nil
}
