// Package fatbin reads fat binaries, which nvcc and clang put into programs: machine code and PTX for several
// GPUs in one image. Only PTX is read, plain or packed by LZ4; by zstd if package zstd below is imported.
//
// The trap: NVIDIA documents none of this. The fields are those seen in the output of compilers of CUDA 11 to
// 13; an image of another form is an error.
package fatbin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Errors of PTX, for errors.Is.
var (
	ErrNone  = errors.New("fatbin: no fat binary")
	ErrNoPTX = errors.New("fatbin: machine code alone, which an emulated GPU cannot run: compile with PTX, -gencode " +
		"arch=compute_90,code=compute_90")
	ErrPacked = errors.New("fatbin: PTX packed by zstd, which is not read here: compile with nvcc -no-compress, or with " +
		"clang")
)

// Unzstd unpacks a frame of zstd, whose size in bytes is known. It is nil where package zstd is not imported.
var Unzstd func(frame []byte, n int) ([]byte, error)

// HeaderSize is how many bytes Size needs.
const HeaderSize = 16

const (
	magic     = 0xba55ed50
	kindPTX   = 1
	flagLZ4   = 0x2000
	flagZstd  = 0x8000
	entrySize = 64      // of the header of an entry, at least
	mostBytes = 1 << 30 // of an image, and of a text
)

// Is reports whether an image begins as a fat binary does.
func Is(image []byte) bool { return len(image) >= 4 && binary.LittleEndian.Uint32(image) == magic }

// Size is the size of an image in bytes, from its first HeaderSize bytes.
func Size(header []byte) (int, error) {
	if !Is(header) || len(header) < HeaderSize {
		return 0, ErrNone
	}
	own, all := int(binary.LittleEndian.Uint16(header[6:])), binary.LittleEndian.Uint64(header[8:])
	if own < HeaderSize || all > mostBytes {
		return 0, fmt.Errorf("fatbin: a header of %d bytes and an image of %d: damaged, or of an unknown version", own, all)
	}
	return own + int(all), nil
}

// A Text is PTX.
type Text struct {
	Capability int // that it is compiled for, 90 for 9.0
	PTX        []byte
}

// PTX gives the texts of an image, of the highest capability first. It costs the bytes of the image and of the texts.
func PTX(image []byte) ([]Text, error) {
	n, err := Size(image)
	if err != nil {
		return nil, err
	}
	if n > len(image) {
		return nil, fmt.Errorf("fatbin: %d bytes of an image of %d", len(image), n)
	}
	var texts []Text
	packed, entries := false, image[binary.LittleEndian.Uint16(image[6:]):n]
	for len(entries) > 0 {
		e, rest, err := next(entries)
		if err != nil {
			return nil, err
		}
		entries = rest
		switch {
		case e.kind != kindPTX:
		case e.flags&flagZstd != 0 && Unzstd == nil:
			packed = true
		default:
			text, err := e.text()
			if err != nil {
				return nil, err
			}
			texts = append(texts, Text{e.capability, text})
		}
	}
	if len(texts) == 0 {
		if packed {
			return nil, ErrPacked
		}
		return nil, ErrNoPTX
	}
	slices.SortStableFunc(texts, func(a, b Text) int { return b.Capability - a.Capability })
	return texts, nil
}

// An entry is one program of an image.
type entry struct {
	kind       uint16
	capability int
	flags      uint64
	payload    []byte
	unpacked   uint64 // bytes, if packed
}

// next reads an entry, and gives the bytes behind it.
func next(b []byte) (e entry, rest []byte, err error) {
	if len(b) < entrySize {
		return e, nil, fmt.Errorf("fatbin: an entry of %d bytes: the image is damaged", len(b))
	}
	own, size := uint64(binary.LittleEndian.Uint32(b[4:])), binary.LittleEndian.Uint64(b[8:])
	if own < entrySize || own > uint64(len(b)) || size > uint64(len(b))-own {
		return e, nil, fmt.Errorf("fatbin: an entry of %d and %d bytes where %d are left: the image is damaged", own,
			size, len(b))
	}
	e = entry{kind: binary.LittleEndian.Uint16(b), capability: int(binary.LittleEndian.Uint32(b[28:])),
		flags:   binary.LittleEndian.Uint64(b[40:]),
		payload: b[own : own+size], unpacked: binary.LittleEndian.Uint64(b[56:])}
	if n := uint64(binary.LittleEndian.Uint32(b[16:])); n != 0 && n <= size {
		e.payload = e.payload[:n] // without padding
	}
	return e, b[own+size:], nil
}

// text is the entry's PTX without the zeros at its end.
func (e entry) text() ([]byte, error) {
	text, unpack := e.payload, unpackLZ4
	if e.flags&flagZstd != 0 {
		unpack = Unzstd
	}
	if e.flags&(flagLZ4|flagZstd) != 0 {
		if e.unpacked > mostBytes {
			return nil, fmt.Errorf("fatbin: PTX of %d bytes: the image is damaged", e.unpacked)
		}
		var err error
		if text, err = unpack(e.payload, int(e.unpacked)); err != nil {
			return nil, err
		}
	}
	return bytes.TrimRight(text, "\x00"), nil
}
