package auth

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A stranger that hangs up in the middle of a handshake is no caller, after whichever byte.
func TestCutOff(t *testing.T) {
	hello := append(append([]byte{byte(len(protocol))}, protocol...), make([]byte, len(Nonce{}))...)
	proof := append(binary.BigEndian.AppendUint16(nil, 3), make([]byte, ProofLen+3)...)
	all := append(hello, proof...)
	answer := func(says []byte) error {
		s := new(script)
		s.in.Write(says)
		return Answer(s, key, protocol, never(t))
	}
	for n := range len(all) {
		err := answer(all[:n])
		if n < len(hello) {
			require.ErrorContains(t, err, "no hello: ", "%d bytes", n)
		} else {
			require.ErrorContains(t, err, "no proof: ", "%d bytes", n)
		}
	}
	require.ErrorIs(t, answer(all), ErrKey)
}

// Lengths that a peer claims are bounded before anything is read.
func TestClaims(t *testing.T) {
	p, body, err := readProof(bytes.NewReader(append(binary.BigEndian.AppendUint16(nil, MaxBody),
		make([]byte, ProofLen+MaxBody)...)))
	require.NoError(t, err)
	require.Len(t, body, MaxBody)
	require.Equal(t, Proof{}, p)
	_, _, err = readProof(bytes.NewReader(append(binary.BigEndian.AppendUint16(nil, MaxBody+1),
		make([]byte, ProofLen)...)))
	require.ErrorIs(t, err, ErrProtocol)
	require.ErrorContains(t, err, "body of 4097 bytes")

	long := strings.Repeat("x", maxContext)
	hello := new(bytes.Buffer)
	n := NewNonce()
	require.NoError(t, writeHello(hello, long, n))
	got, err := readHello(hello, long)
	require.NoError(t, err)
	require.Equal(t, n, got)
	require.EqualError(t, writeHello(io.Discard, long+"x", n), "context of 65 bytes, at most 64")
	_, err = readHello(bytes.NewReader(append([]byte{maxContext + 1}, make([]byte, 200)...)), long)
	require.Equal(t, ErrProtocol, err)
	_, err = readHello(strings.NewReader("\x01y"+string(make([]byte, len(n)))), "x")
	require.ErrorContains(t, err, `it speaks "y" and this rank "x": use one release of ringo everywhere`)
}
