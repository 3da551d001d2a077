package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

var key = []byte("the key of a test")

func nonces() (a, b Nonce) {
	for i := range a {
		a[i], b[i] = byte(i), byte(100+i)
	}
	return a, b
}

// The bytes of a proof are fixed: processes of one release must agree on them.
func TestProofBytes(t *testing.T) {
	a, b := nonces()
	x := Exchange{"ringo test 1", a, b}
	h := hmac.New(sha256.New, key)
	for _, part := range []string{"ringo test 1", "caller", string(b[:]), string(a[:]), "body"} {
		h.Write([]byte{0, 0, 0, 0, 0, 0, 0, byte(len(part))})
		h.Write([]byte(part))
	}
	p := x.Prove(key, Caller, []byte("body"))
	require.Equal(t, hex.EncodeToString(h.Sum(nil)), hex.EncodeToString(p[:]))
}

// Nothing that a proof is made of can be exchanged for something else.
func TestProofCoversAll(t *testing.T) {
	a, b := nonces()
	good := func() (x Exchange, k []byte, role Role, body [][]byte) {
		return Exchange{"ringo test 1", a, b}, key, Caller, [][]byte{[]byte("bo"), []byte("dy")}
	}
	x, k, role, body := good()
	p := x.Prove(k, role, body...)
	require.NoError(t, x.Check(k, p, role, body...))
	for name, change := range map[string]func(x *Exchange, k *[]byte, role *Role, body *[][]byte){
		"key":              func(_ *Exchange, k *[]byte, _ *Role, _ *[][]byte) { *k = []byte("another") },
		"role":             func(_ *Exchange, _ *[]byte, r *Role, _ *[][]byte) { *r = Listener },
		"context":          func(x *Exchange, _ *[]byte, _ *Role, _ *[][]byte) { x.Context = "ringo test 2" },
		"caller's nonce":   func(x *Exchange, _ *[]byte, _ *Role, _ *[][]byte) { x.Caller[31]++ },
		"listener's nonce": func(x *Exchange, _ *[]byte, _ *Role, _ *[][]byte) { x.Listener[0]++ },
		"nonces' order": func(x *Exchange, _ *[]byte, _ *Role, _ *[][]byte) {
			x.Caller, x.Listener = x.Listener,
				x.Caller
		},
		"reflected": func(x *Exchange, _ *[]byte, r *Role, _ *[][]byte) {
			x.Caller, x.Listener, *r = x.Listener, x.Caller, Listener
		},
		"body":       func(_ *Exchange, _ *[]byte, _ *Role, b *[][]byte) { (*b)[1] = []byte("dz") },
		"no body":    func(_ *Exchange, _ *[]byte, _ *Role, b *[][]byte) { *b = nil },
		"boundaries": func(_ *Exchange, _ *[]byte, _ *Role, b *[][]byte) { *b = [][]byte{[]byte("bod"), []byte("y")} },
		"more":       func(_ *Exchange, _ *[]byte, _ *Role, b *[][]byte) { *b = append(*b, nil) },
	} {
		x, k, role, body := good()
		change(&x, &k, &role, &body)
		require.ErrorIs(t, x.Check(k, p, role, body...), ErrKey, name)
	}
	for i := range p {
		p[i] ^= 1
		require.ErrorIs(t, x.Check(key, p, Caller, body...), ErrKey)
		p[i] ^= 1
	}
}

func TestNoncesDiffer(t *testing.T) {
	require.NotEqual(t, NewNonce(), NewNonce())
}
