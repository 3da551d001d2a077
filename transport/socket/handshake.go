package socket

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/ringo-go/ringo/transport"
)

// The handshake of a stream: four messages of fixed size.
//
//	dialler → hello      who, to whom, which stream of which connection, nonce
//	        ← challenge  nonce, HMAC(key, "accept", hello, nonce)
//	        → proof      HMAC(key, "dial", hello, challenge)
//	        ← verdict    welcome, or the reason why not
//
// Each side's proof covers the other's fresh nonce, so neither can be replayed,
// and the words keep one side's proof from serving as the other's. The dialler
// believes nothing before the challenge, the listener nothing before the proof.
const (
	version      = 1
	helloLen     = 80
	challengeLen = 74
	proofLen     = sha256.Size
	verdictLen   = 12
)

var helloMagic = [8]byte{'r', 'i', 'n', 'g', 'o', 's', 'c', 'k'}

type hello struct {
	version         uint16
	stream, streams int
	from, to        int
	limits          transport.Limits
	conn            [16]byte // random, the same for all streams of a connection
	nonce           [32]byte
}

func (h *hello) bytes() []byte {
	b := append(make([]byte, 0, helloLen), helloMagic[:]...)
	b = binary.LittleEndian.AppendUint16(b, h.version)
	b = binary.LittleEndian.AppendUint16(b, uint16(h.stream))
	b = binary.LittleEndian.AppendUint16(b, uint16(h.streams))
	b = binary.LittleEndian.AppendUint16(b, 0)
	for _, v := range []int{h.from, h.to, h.limits.Slots, h.limits.SlotBytes} {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	b = append(b, h.conn[:]...)
	return append(b, h.nonce[:]...)
}

func parseHello(b []byte) (h hello, err error) {
	if len(b) != helloLen || [8]byte(b) != helloMagic {
		return h, errors.New("not a hello of ringo")
	}
	u16 := func(i int) int { return int(binary.LittleEndian.Uint16(b[i:])) }
	u32 := func(i int) int { return int(binary.LittleEndian.Uint32(b[i:])) }
	h = hello{
		version: uint16(u16(8)), stream: u16(10), streams: u16(12),
		from: u32(16), to: u32(20),
		limits: transport.Limits{Slots: u32(24), SlotBytes: u32(28)},
		conn:   [16]byte(b[32:]), nonce: [32]byte(b[48:]),
	}
	if h.streams < 1 || h.streams > maxStreams || h.stream >= h.streams {
		return h, fmt.Errorf("stream %d of %d", h.stream, h.streams)
	}
	return h, nil
}

type challenge struct {
	version uint16
	nonce   [32]byte
	mac     [32]byte
}

func (c *challenge) bytes() []byte {
	b := append(make([]byte, 0, challengeLen), helloMagic[:]...)
	b = binary.LittleEndian.AppendUint16(b, c.version)
	b = append(b, c.nonce[:]...)
	return append(b, c.mac[:]...)
}

func parseChallenge(b []byte) (c challenge, err error) {
	if len(b) != challengeLen || [8]byte(b) != helloMagic {
		return c, errors.New("not a challenge of ringo")
	}
	return challenge{
		version: binary.LittleEndian.Uint16(b[8:]),
		nonce:   [32]byte(b[10:]), mac: [32]byte(b[42:]),
	}, nil
}

type verdict struct {
	code   uint32
	limits transport.Limits // of the listener
}

const (
	welcome uint32 = iota
	wrongRank
	wrongLimits
	wrongStreams
)

func (v *verdict) bytes() []byte {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, verdictLen), v.code)
	b = binary.LittleEndian.AppendUint32(b, uint32(v.limits.Slots))
	return binary.LittleEndian.AppendUint32(b, uint32(v.limits.SlotBytes))
}

func parseVerdict(b []byte) (v verdict, err error) {
	if len(b) != verdictLen {
		return v, errors.New("not a verdict of ringo")
	}
	return verdict{binary.LittleEndian.Uint32(b), transport.Limits{
		Slots:     int(binary.LittleEndian.Uint32(b[4:])),
		SlotBytes: int(binary.LittleEndian.Uint32(b[8:])),
	}}, nil
}

func (v verdict) err(h hello) error {
	switch v.code {
	case welcome:
		return nil
	case wrongRank:
		return fmt.Errorf("the listener there is not rank %d", h.to)
	case wrongLimits:
		return fmt.Errorf("it has queues of %+v and this rank of %+v", v.limits, h.limits)
	case wrongStreams:
		return fmt.Errorf("it refused stream %d of %d", h.stream, h.streams)
	}
	return fmt.Errorf("it refused for unknown reason %d", v.code)
}

func prove(key []byte, side string, parts ...[]byte) (mac [32]byte) {
	m := hmac.New(sha256.New, key)
	io.WriteString(m, "ringo socket "+side+"\x00")
	for _, p := range parts {
		m.Write(p) // the parts are of fixed size
	}
	return [32]byte(m.Sum(nil))
}

// A strangerError is a partner that has not proved that it knows the key.
type strangerError struct{ reason error }

func (e *strangerError) Error() string { return e.reason.Error() }
func (e *strangerError) Unwrap() error { return e.reason }

// greet is the dialler's side. It sets h.version and h.nonce.
func greet(c net.Conn, key []byte, h hello) error {
	h.version = version
	rand.Read(h.nonce[:])
	hb := h.bytes()
	if _, err := c.Write(hb); err != nil {
		return err
	}
	cb := make([]byte, challengeLen)
	if _, err := io.ReadFull(c, cb); err != nil {
		return err
	}
	ch, err := parseChallenge(cb)
	if err != nil {
		return &strangerError{err}
	}
	if ch.version != version {
		return &strangerError{fmt.Errorf("it speaks version %d of the socket protocol and this rank version %d", ch.version, version)}
	}
	if want := prove(key, "accept", hb, ch.nonce[:]); !hmac.Equal(want[:], ch.mac[:]) {
		return &strangerError{errors.New("it does not know the key of this communicator")}
	}
	mac := prove(key, "dial", hb, cb)
	if _, err := c.Write(mac[:]); err != nil {
		return err
	}
	vb := make([]byte, verdictLen)
	if _, err := io.ReadFull(c, vb); err != nil {
		return err
	}
	v, err := parseVerdict(vb)
	if err != nil {
		return err
	}
	if err := v.err(h); err != nil {
		return &strangerError{err}
	}
	return nil
}

// receive is the listener's side. judge sees a hello that is proved and gives
// the verdict; the error is nil only if it was welcome.
func receive(c net.Conn, key []byte, judge func(hello) verdict) (hello, error) {
	hb := make([]byte, helloLen)
	if _, err := io.ReadFull(c, hb); err != nil {
		return hello{}, err
	}
	h, err := parseHello(hb)
	if err != nil {
		return h, &strangerError{err}
	}
	ch := challenge{version: version}
	rand.Read(ch.nonce[:])
	ch.mac = prove(key, "accept", hb, ch.nonce[:])
	cb := ch.bytes()
	if _, err := c.Write(cb); err != nil {
		return h, err
	}
	if h.version != version {
		return h, &strangerError{fmt.Errorf("it speaks version %d of the socket protocol and this rank version %d", h.version, version)}
	}
	pb := make([]byte, proofLen)
	if _, err := io.ReadFull(c, pb); err != nil {
		return h, err
	}
	if want := prove(key, "dial", hb, cb); !hmac.Equal(want[:], pb) {
		return h, &strangerError{errors.New("it does not know the key of this communicator")}
	}
	v := judge(h)
	if _, err := c.Write(v.bytes()); err != nil {
		return h, err
	}
	return h, v.err(h)
}
