package cudaemu_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/fatbin"
	_ "github.com/ringo-go/ringo/internal/emu/fatbin/zstd"
	"github.com/ringo-go/ringo/internal/test/must"
)

// zstdImage has one PTX for 9.0, packed as nvcc of CUDA 13 does by default.
func zstdImage(frame []byte, unpacked int) []byte {
	const entry = 80
	b := make([]byte, 16+entry, 16+entry+len(frame))
	binary.LittleEndian.PutUint32(b, 0xba55ed50)
	binary.LittleEndian.PutUint16(b[4:], 1)
	binary.LittleEndian.PutUint16(b[6:], 16)
	binary.LittleEndian.PutUint64(b[8:], uint64(entry+len(frame)))
	e := b[16:]
	binary.LittleEndian.PutUint16(e, 1)
	binary.LittleEndian.PutUint32(e[4:], entry)
	binary.LittleEndian.PutUint64(e[8:], uint64(len(frame)))
	binary.LittleEndian.PutUint32(e[16:], uint32(len(frame)))
	binary.LittleEndian.PutUint32(e[28:], 90)
	binary.LittleEndian.PutUint64(e[40:], 0x8011)
	binary.LittleEndian.PutUint64(e[56:], uint64(unpacked))
	return append(b, frame...)
}

func TestZstd(t *testing.T) {
	ptx := bytes.Repeat([]byte(".version 8.8\n"), 1000)
	w := must.Get(zstd.NewWriter(nil))
	frame := w.EncodeAll(ptx, nil)
	texts := must.Get(fatbin.PTX(zstdImage(frame, len(ptx))))
	require.Equal(t, []fatbin.Text{{Capability: 90, PTX: ptx}}, texts)

	small := ptx[:700]
	texts = must.Get(fatbin.PTX(zstdImage(w.EncodeAll(small, nil), len(small))))
	require.Equal(t, []fatbin.Text{{Capability: 90, PTX: small}}, texts)

	for says, wrong := range map[string][]byte{
		"size":                                  zstdImage(frame, len(ptx)-1),
		"13000 bytes where 13001 are announced": zstdImage(frame, len(ptx)+1),
		"unexpected EOF":                        zstdImage(frame[:len(frame)-9], len(ptx)),
		"magic":                                 zstdImage([]byte("no frame"), 9),
		"PTX of 2147483648 bytes":               zstdImage(frame, 1<<31),
	} {
		_, err := fatbin.PTX(wrong)
		require.ErrorContains(t, err, "the image is damaged")
		require.ErrorContains(t, err, says)
	}
}
