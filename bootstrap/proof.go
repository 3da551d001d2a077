package bootstrap

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
)

type nonce = [nonceLen]byte

func randomNonce() (n nonce) {
	rand.Read(n[:]) // never fails
	return n
}

// prove shows knowledge of key to the side that made nonce theirs. The role
// keeps one side's proof from being played back as the other's.
func prove(key []byte, role string, theirs, ours nonce, body []byte) (p [proofLen]byte) {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "ringo rendezvous %d %s\n", version, role)
	h.Write(theirs[:])
	h.Write(ours[:])
	h.Write(body)
	h.Sum(p[:0])
	return p
}

func same(a, b [proofLen]byte) bool { return hmac.Equal(a[:], b[:]) }

// groupKey is the secret of one group, apart from every other of the same ID.
func groupKey(key []byte, salt nonce) []byte {
	k, err := hkdf.Key(sha256.New, key, salt[:], "ringo group", keyLen)
	if err != nil {
		panic(err) // only for lengths that are constants here
	}
	return k
}
