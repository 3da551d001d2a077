package rendezvous

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"reflect"
	"slices"
)

// A Message is the body of a frame: length of the body (4 bytes, big endian), kind (1 byte), body.
type Message interface{ Coded }

// The kind of a message is one more than its place in kinds.
var (
	kinds = []Message{
		new(Refusal), new(Welcome), new(Start), new(GiveUp), new(Part), new(Gathered), new(Fail), new(Failed), new(Leave),
		new(Parted), new(Gone), new(Bye), new(Inquire), new(Where), new(There), new(Silent), new(Withdraw), new(Withdrawn),
		new(Held), new(Resend), new(Late), new(Halt), new(Regroup), new(Regrouped), new(Roster), new(Knock), new(Knocked),
	}
	kindOf = func() map[reflect.Type]byte {
		of := map[reflect.Type]byte{}
		for i, m := range kinds {
			of[reflect.TypeOf(m)] = byte(i + 1)
		}
		return of
	}()
)

// Encode makes the frame of m.
func Encode(m Message) []byte {
	b := Append(make([]byte, 5, 64), m)
	binary.BigEndian.PutUint32(b, uint32(len(b)-5))
	b[4] = kindOf[reflect.TypeOf(m)]
	return b
}

// Decode reads the next frame. A body longer than limit is an error before any
// of it is read. Memory grows with the bytes that have come, not with those promised.
func Decode(r *bufio.Reader, limit int) (Message, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n, kind := int64(binary.BigEndian.Uint32(head[:])), int(head[4])
	if kind == 0 || kind > len(kinds) || n > int64(limit) {
		return nil, fmt.Errorf("%w: kind %d, %d bytes", ErrMalformed, kind, n)
	}
	body, err := readBody(r, int(n))
	if err != nil {
		return nil, err
	}
	m := reflect.New(reflect.TypeOf(kinds[kind-1]).Elem()).Interface().(Message)
	if err := Parse(body, m); err != nil {
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
