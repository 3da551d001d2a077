// Package zstd has package fatbin read PTX packed by zstd, as nvcc packs it since CUDA 13. A program that reads fat
// binaries imports it; programs that only use the emulator do without, and without the library.
package zstd

import (
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/ringo-go/ringo/internal/emu/fatbin"
)

func init() { fatbin.Unzstd = unpack }

// unpack unpacks a frame, which must give exactly n bytes.
func unpack(frame []byte, n int) ([]byte, error) {
	const least = 1 << 10 // the decoder's own: it counts no frame as smaller
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(max(n, least))))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	text, err := d.DecodeAll(frame, nil)
	if err == nil && len(text) != n {
		err = fmt.Errorf("%d bytes where %d are announced", len(text), n)
	}
	if err != nil {
		return nil, fmt.Errorf("fatbin: zstd: %w: the image is damaged", err)
	}
	return text, nil
}
