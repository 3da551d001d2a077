package ptx_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/fatbin"
	"github.com/ringo-go/ringo/internal/test/must"
)

// program is an entry of an image in the making.
type program struct {
	kind       uint16
	capability uint32
	flags      uint64
	payload    []byte
	unpacked   int
}

func image(programs ...program) []byte {
	var all []byte
	for _, p := range programs {
		padded := append(bytes.Clone(p.payload), make([]byte, -len(p.payload)&7)...)
		h := make([]byte, 64)
		binary.LittleEndian.PutUint16(h, p.kind)
		binary.LittleEndian.PutUint16(h[2:], 0x101)
		binary.LittleEndian.PutUint32(h[4:], 64)
		binary.LittleEndian.PutUint64(h[8:], uint64(len(padded)))
		if p.flags != 0 {
			binary.LittleEndian.PutUint32(h[16:], uint32(len(p.payload)))
		}
		binary.LittleEndian.PutUint32(h[28:], p.capability)
		binary.LittleEndian.PutUint64(h[40:], p.flags)
		binary.LittleEndian.PutUint64(h[56:], uint64(p.unpacked))
		all = append(append(all, h...), padded...)
	}
	h := make([]byte, 16)
	binary.LittleEndian.PutUint32(h, 0xba55ed50)
	binary.LittleEndian.PutUint16(h[4:], 1)
	binary.LittleEndian.PutUint16(h[6:], 16)
	binary.LittleEndian.PutUint64(h[8:], uint64(len(all)))
	return append(h, all...)
}

// packed is "abcdabcdabcdabcd" and "tail!": literals, an overlapping copy, literals.
var packed = []byte{4<<4 | 8, 'a', 'b', 'c', 'd', 4, 0, 5 << 4, 't', 'a', 'i', 'l', '!'}

func TestFatBinary(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 300) // its copy's length takes bytes of its own
	longPacked := []byte{1<<4 | 15, 'x', 1, 0, 255, 294 - 4 - 15 - 255, 5 << 4, 'x', 'x', 'x', 'x', 'x'}
	texts, err := fatbin.PTX(image(
		program{kind: 1, capability: 70, payload: []byte("plain\x00")},
		program{kind: 2, capability: 90, payload: []byte("\x7fELF")},
		program{kind: 1, capability: 90, flags: 0x2011, payload: packed, unpacked: 21},
		program{kind: 1, capability: 80, flags: 0x2011, payload: longPacked, unpacked: 300},
	))
	require.NoError(t, err)
	require.Equal(t, []fatbin.Text{{Capability: 90, PTX: []byte("abcdabcdabcdabcdtail!")}, {Capability: 80, PTX: long},
		{Capability: 70, PTX: []byte("plain")}}, texts)
}

func TestFatBinaryWithoutPTX(t *testing.T) {
	elf := program{kind: 2, capability: 90, payload: []byte("\x7fELF")}
	require.ErrorIs(t, must.Err(fatbin.PTX(image(elf))), fatbin.ErrNoPTX)
	_, err := fatbin.PTX(image(elf, program{kind: 1, capability: 90, flags: 0x8011, payload: []byte("?"), unpacked: 9}))
	require.ErrorIs(t, err, fatbin.ErrPacked)
	require.ErrorIs(t, must.Err(fatbin.PTX([]byte(".version 8.0"))), fatbin.ErrNone)
}

// Each image that is cut off or changed is an error, or gives some texts; none is read beyond its end.
func TestDamagedFatBinary(t *testing.T) {
	whole := image(program{kind: 1, capability: 70, payload: []byte("plain\x00")},
		program{kind: 1, capability: 90, flags: 0x2011, payload: packed, unpacked: 21})
	for n := range whole {
		require.Error(t, must.Err(fatbin.PTX(whole[:n:n])), "%d bytes", n)
	}
	failed := 0
	for i := range whole {
		for _, bit := range []byte{1, 0x80, 0xff} {
			b := bytes.Clone(whole)
			b[i] ^= bit
			if _, err := fatbin.PTX(b); err != nil {
				failed++
			}
		}
	}
	require.Greater(t, failed, 50)
}

func FuzzFatBinary(f *testing.F) {
	f.Add(image(program{kind: 1, capability: 90, flags: 0x2011, payload: packed, unpacked: 21}))
	f.Fuzz(func(t *testing.T, b []byte) {
		texts, err := fatbin.PTX(b)
		require.True(t, err != nil || len(texts) > 0)
	})
}
