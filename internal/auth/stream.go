package auth

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// MaxBody is the longest body or answer of a handshake over a stream.
const MaxBody = 4 << 10

const maxContext = 64

var (
	// ErrProtocol is a stranger that does not speak this handshake, or speaks it
	// for another protocol or version.
	ErrProtocol = errors.New("not the protocol of this listener")
	// ErrHungUp is a listener that has ended the connection instead of answering
	// the caller's proof: mostly because the proof is wrong, but a listener with
	// too many callers does it too, so trying again for a while makes sense.
	ErrHungUp = errors.New("it hung up without an answer to our proof: its key is another one, or too many call it")
)

// A Bound stream is a channel with a secret of its own, such as a secure.Conn. Proofs over a channel
// hold for this channel alone: a process between two channels cannot pass proofs on.
type Bound interface {
	Binding() ([]byte, error)
}

// exchange is the context of the proofs over rw.
func exchange(rw io.ReadWriter, context string) (x Exchange, err error) {
	x.Context = context
	if b, ok := rw.(Bound); ok {
		secret, err := b.Binding()
		if err != nil {
			return x, err
		}
		x.Context += " over the channel " + string(secret)
	}
	return x, nil
}

// Call is the caller's side of a handshake over rw. body tells the listener what the
// caller wants; answer comes from a listener that knows the key. The caller of Call
// sets deadlines. Errors: ErrProtocol, ErrKey, ErrHungUp, and those of rw.
func Call(rw io.ReadWriter, key []byte, context string, body []byte) (answer []byte, err error) {
	x, err := exchange(rw, context)
	if err != nil {
		return nil, err
	}
	x.Caller = NewNonce()
	if err := writeHello(rw, context, x.Caller); err != nil {
		return nil, err
	}
	if x.Listener, err = readHello(rw, context); err != nil {
		return nil, err
	}
	if err := writeProof(rw, x.Prove(key, Caller, body), body); err != nil {
		return nil, err
	}
	p, answer, err := readProof(rw)
	switch {
	case errors.Is(err, ErrProtocol) || errors.Is(err, os.ErrDeadlineExceeded):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w (%w)", ErrHungUp, err)
	}
	if err := x.Check(key, p, Listener, body, answer); err != nil {
		return nil, err
	}
	return answer, nil
}

// Answer is the listener's side of a handshake over rw. judge gets a body whose
// sender knows the key, calls Pending.Trust and returns the answer. The caller of
// Answer sets deadlines. Errors: ErrProtocol, ErrKey, and those of rw; judge has not
// been called then, except if the answer could not be written.
func Answer(rw io.ReadWriter, key []byte, context string, judge func(body []byte) (answer []byte)) error {
	x, err := exchange(rw, context)
	if err != nil {
		return err
	}
	x.Listener = NewNonce()
	if x.Caller, err = readHello(rw, context); err != nil {
		if errors.Is(err, ErrProtocol) { // the other side can name both versions then
			_ = writeHello(rw, context, x.Listener)
		}
		return err
	}
	if err := writeHello(rw, context, x.Listener); err != nil {
		return err
	}
	p, body, err := readProof(rw)
	if err != nil {
		return fmt.Errorf("no proof: %w", err)
	}
	if err := x.Check(key, p, Caller, body); err != nil {
		return err
	}
	answer := judge(body)
	return writeProof(rw, x.Prove(key, Listener, body, answer), answer)
}

// A hello is the length of the context (1 byte), the context, and the nonce.
func writeHello(w io.Writer, context string, n Nonce) error {
	if len(context) > maxContext {
		return fmt.Errorf("context of %d bytes, at most %d", len(context), maxContext)
	}
	b := append([]byte{byte(len(context))}, context...)
	_, err := w.Write(append(b, n[:]...))
	return err
}

func readHello(r io.Reader, context string) (n Nonce, err error) {
	var b [1 + maxContext]byte
	if _, err := io.ReadFull(r, b[:1]); err != nil {
		return n, fmt.Errorf("no hello: %w", err)
	}
	said := b[1:][:min(b[0], maxContext)]
	if int(b[0]) != len(said) {
		return n, ErrProtocol
	}
	for _, b := range [][]byte{said, n[:]} {
		if _, err := io.ReadFull(r, b); err != nil {
			return n, fmt.Errorf("no hello: %w", err)
		}
	}
	if string(said) != context {
		return n, fmt.Errorf("%w: it speaks %q and this rank %q: use one release of ringo everywhere", ErrProtocol,
			said, context)
	}
	return n, nil
}

// A proof is the length of the body (2 bytes, big-endian), the Proof, and the body.
func writeProof(w io.Writer, p Proof, body []byte) error {
	if len(body) > MaxBody {
		return fmt.Errorf("handshake with a body of %d bytes, at most %d", len(body), MaxBody)
	}
	b := binary.BigEndian.AppendUint16(nil, uint16(len(body)))
	b = append(b, p[:]...)
	_, err := w.Write(append(b, body...))
	return err
}

func readProof(r io.Reader) (p Proof, body []byte, err error) {
	var head [2 + ProofLen]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return p, nil, err
	}
	n := int(binary.BigEndian.Uint16(head[:]))
	if n > MaxBody {
		return p, nil, fmt.Errorf("%w: body of %d bytes", ErrProtocol, n)
	}
	body = make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return p, nil, err
	}
	return Proof(head[2:]), body, nil
}
