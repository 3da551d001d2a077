package main

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// An idx is an array of bytes as MNIST's files hold it: two zero bytes, a type,
// the number of dimensions, each dimension as a big-endian uint32, and then the
// elements, the last dimension running fastest.
//
// Source: Y. LeCun, C. Cortes, C. Burges, "The MNIST database of handwritten
// digits", section "File formats".
type idx struct {
	shape []int
	data  []byte // the product of shape
}

const (
	idxUint8   = 0x08    // the only element type of pictures and labels
	maxIDXDims = 4       // pictures have 3 dimensions, or 4 with colors
	maxIDXData = 1 << 30 // bytes; a larger array is a broken header
)

// idxTypes names the other element types, for the error.
var idxTypes = map[byte]string{0x09: "int8", 0x0b: "int16", 0x0c: "int32", 0x0d: "float32", 0x0e: "float64"}

// readIDX reads an array and expects nothing after it. It takes memory only as data
// comes, so a header with false lengths costs nothing.
func readIDX(r io.Reader) (idx, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return idx{}, short(err, "the 4 bytes of the magic number")
	}
	switch {
	case head[0] != 0 || head[1] != 0:
		return idx{}, fmt.Errorf("not an IDX file: it begins with % x, want 00 00", head[:2])
	case head[2] != idxUint8:
		name, ok := idxTypes[head[2]]
		if !ok {
			name = "unknown"
		}
		return idx{}, fmt.Errorf("elements are of type %#02x (%s), want %#02x (uint8)", head[2], name, idxUint8)
	case head[3] == 0 || head[3] > maxIDXDims:
		return idx{}, fmt.Errorf("%d dimensions, want 1…%d", head[3], maxIDXDims)
	}
	dims := make([]byte, 4*head[3])
	if _, err := io.ReadFull(r, dims); err != nil {
		return idx{}, short(err, fmt.Sprintf("%d dimensions", head[3]))
	}
	x := idx{shape: make([]int, head[3])}
	size := 1
	for i := range x.shape {
		d := int(binary.BigEndian.Uint32(dims[4*i:]))
		if d < 1 || d > maxIDXData/size {
			return idx{}, fmt.Errorf("dimension %d is %d, want 1 or more and %d bytes at most in all", i, d, maxIDXData)
		}
		x.shape[i] = d
		size *= d
	}
	var err error
	if x.data, err = io.ReadAll(io.LimitReader(r, int64(size)+1)); err != nil {
		return idx{}, short(err, fmt.Sprintf("%d bytes of data", size))
	}
	switch {
	case len(x.data) < size:
		return idx{}, short(io.ErrUnexpectedEOF,
			fmt.Sprintf("%d bytes of data (shape %v), has %d", size, x.shape, len(x.data)))
	case len(x.data) > size:
		return idx{}, fmt.Errorf("more data than the %d bytes of shape %v", size, x.shape)
	}
	return x, nil
}

// short explains the error of a file that ends early; want is the missing part.
func short(err error, want string) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the file is truncated: want %s; download it again: %w", want, io.ErrUnexpectedEOF)
	}
	return err
}

// openIDX reads a file, which may be compressed by gzip.
func openIDX(path string) (idx, error) {
	f, err := os.Open(path)
	if err != nil {
		return idx{}, fmt.Errorf("%w; -images and -labels want IDX files as MNIST has them, or leave both out for made-up "+
			"data", err)
	}
	defer f.Close()
	x, err := readMaybeGzip(f)
	if err != nil {
		return idx{}, fmt.Errorf("%s: %w", path, err)
	}
	return x, nil
}

// readMaybeGzip reads an array, which may be compressed: the first bytes tell.
func readMaybeGzip(r io.Reader) (idx, error) {
	b := bufio.NewReader(r)
	if magic, _ := b.Peek(2); string(magic) != "\x1f\x8b" {
		return readIDX(b)
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return idx{}, short(err, "a gzip header")
	}
	return readIDX(z)
}
