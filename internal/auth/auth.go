// Package auth is for listeners that strangers can find. It has the handshake in
// which two processes prove to each other that they know a secret, the bound on
// connections that have not proved it yet (Pending), and the bound on what such
// connections may write into the log (Log).
//
// The handshake proves who is at the other end. It does not protect later bytes:
// whoever can change bytes on the way can change them, unless the connection goes
// over TLS (package secure), to which the proofs are then bound.
//
// The caller proves itself first:
//
//	caller   → hello     context, nonce
//	listener → hello     context, nonce
//	caller   → proof     HMAC-SHA256 over context, "caller", both nonces, body; body
//	listener → proof     HMAC-SHA256 over context, "listener", both nonces, body, answer; answer
//
// So a caller without the key gets nothing that was made with the key, and
// cannot use the listener to try keys. Neither side believes a word before
// it has checked the other's proof. Fresh nonces of both sides keep a proof from
// being replayed, the role keeps it from being sent back, and the context (a
// protocol and its version, "ringo shm 1") makes it worthless at another listener.
package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

const (
	NonceLen = 32
	ProofLen = sha256.Size
)

// A Nonce is a random number that is used in one handshake.
type Nonce [NonceLen]byte

// A Proof shows that its sender knows the key.
type Proof [ProofLen]byte

// NewNonce is a fresh Nonce.
func NewNonce() (n Nonce) {
	rand.Read(n[:]) // never fails
	return n
}

// A Role is a side of the handshake.
type Role string

// The caller connects to the listener.
const (
	Caller   Role = "caller"
	Listener Role = "listener"
)

// ErrKey is a wrong proof: the other side has another key.
var ErrKey = errors.New("it has another key")

// An Exchange is what both sides of one handshake know. Call and Answer carry a
// handshake out over a stream. A protocol with messages of its own makes an
// Exchange and calls Prove and Check itself.
type Exchange struct {
	Context  string // the protocol and its version
	Caller   Nonce  // made by the caller
	Listener Nonce  // made by the listener
}

// Prove returns the proof of the side role, for this exchange and for body. Whatever
// that side sends belongs into body, else others can change it on the way. The
// boundaries between the parts of body count.
func (x *Exchange) Prove(key []byte, role Role, body ...[]byte) (p Proof) {
	h := hmac.New(sha256.New, key)
	write := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	theirs, ours := x.Listener, x.Caller
	if role == Listener {
		theirs, ours = ours, theirs
	}
	write([]byte(x.Context))
	write([]byte(role))
	write(theirs[:])
	write(ours[:])
	for _, b := range body {
		write(b)
	}
	h.Sum(p[:0])
	return p
}

// Check returns nil if p is Prove(key, role, body...), else ErrKey.
func (x *Exchange) Check(key []byte, p Proof, role Role, body ...[]byte) error {
	want := x.Prove(key, role, body...)
	if !hmac.Equal(p[:], want[:]) {
		return ErrKey
	}
	return nil
}
