package bootstrap

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Every message is a frame: length of the body (4 bytes, big endian), kind
// (1 byte), body. Numbers are big endian; texts and blobs have their length
// (4 bytes) before them.

const (
	version   = 3
	protocol  = "ringo rendezvous 6" // of the handshake
	maxRanks  = 1 << 16
	maxText   = 4 << 10  // a reason, a host name
	maxBlob   = 16 << 20 // one rank's part of an AllGather
	maxGather = 1 << 30  // all parts together
	maxBody   = maxGather + 8*maxRanks
)

var errMalformed = errors.New("malformed message")

type kind byte

const (
	kRefusal kind = iota + 1
	kWelcome
	kStart
	kGiveUp
	kPart
	kGathered
	kFail
	kFailed
	kLeave
	kParted
	kLeft
	kBye
	kInquire
	kWhere
	kPosition
	kSilent
	kWithdraw
	kWithdrawn
	kHeld
	kResend
	kLate
	kHalt
	kRegroup
	kRegrouped
	kRoster
	kKnock
	kKnocked
)

// A message is the body of one frame. Parse takes the whole body and keeps
// references to it; it fails on every body that Append does not write.
type message interface {
	kind() kind
	Append(b []byte) []byte
	Parse(b []byte) error
}

func newMessage(k kind) message {
	switch k {
	case kRefusal:
		return &refusal{}
	case kWelcome:
		return &welcome{}
	case kStart:
		return &start{}
	case kGiveUp:
		return &giveUp{}
	case kPart:
		return &part{}
	case kGathered:
		return &gathered{}
	case kFail:
		return &fail{}
	case kFailed:
		return &failed{}
	case kLeave:
		return &leave{}
	case kParted:
		return &parted{}
	case kLeft:
		return &left{}
	case kBye:
		return &bye{}
	case kInquire:
		return &inquire{}
	case kWhere:
		return &where{}
	case kPosition:
		return &position{}
	case kSilent:
		return &silent{}
	case kWithdraw:
		return &withdraw{}
	case kWithdrawn:
		return &withdrawn{}
	case kHeld:
		return &held{}
	case kResend:
		return &resend{}
	case kLate:
		return &late{}
	case kHalt:
		return &halt{}
	case kRegroup:
		return &regroup{}
	case kRegrouped:
		return &regrouped{}
	case kRoster:
		return &roster{}
	case kKnock:
		return &knock{}
	case kKnocked:
		return &knocked{}
	}
	return nil
}

// encode makes the frame of m.
func encode(m message) []byte {
	b := m.Append(make([]byte, 5, 64))
	binary.BigEndian.PutUint32(b, uint32(len(b)-5))
	b[4] = byte(m.kind())
	return b
}

// decode reads the next frame. A body longer than limit is an error before any
// of it is read. Memory grows with the bytes that have come, not with those promised.
func decode(r *bufio.Reader, limit int) (message, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(head[:]))
	m := newMessage(kind(head[4]))
	if m == nil || n > int64(limit) {
		return nil, fmt.Errorf("%w: kind %d, %d bytes", errMalformed, head[4], n)
	}
	body, err := readBody(r, int(n))
	if err != nil {
		return nil, err
	}
	if err := m.Parse(body); err != nil {
		return nil, err
	}
	return m, nil
}

func readBody(r io.Reader, n int) ([]byte, error) {
	const step = 1 << 20
	body := make([]byte, 0, min(n, step))
	for len(body) < n {
		had := len(body)
		more := min(n-had, max(step, had))
		body = slices.Grow(body, more)[:had+more]
		if _, err := io.ReadFull(r, body[had:]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return body, nil
}
