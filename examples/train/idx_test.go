package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// encodeIDX writes an array of bytes.
func encodeIDX(x idx) []byte {
	b := []byte{0, 0, idxUint8, byte(len(x.shape))}
	for _, d := range x.shape {
		b = append(b, byte(d>>24), byte(d>>16), byte(d>>8), byte(d))
	}
	return append(b, x.data...)
}

func zip(b []byte) []byte {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write(b)
	w.Close()
	return z.Bytes()
}

func TestIDX(t *testing.T) {
	array := idx{shape: []int{2, 1, 3}, data: []byte("abcdef")}
	good := encodeIDX(array)
	for _, b := range [][]byte{good, zip(good)} {
		x, err := readMaybeGzip(bytes.NewReader(b))
		require.NoError(t, err)
		require.Equal(t, array, x)
	}
	require.Equal(t, "\x00\x00\x08\x03\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x03abcdef", string(good))
}

func TestBadIDX(t *testing.T) {
	for _, tc := range []struct{ name, file, says string }{
		{"empty", "", "truncated: want the 4 bytes"},
		{"text", "hello", "not an IDX file: it begins with 68 65"},
		{"floats", "\x00\x00\x0d\x01\x00\x00\x00\x01abcd", "0x0d (float32), want 0x08"},
		{"unknown type", "\x00\x00\x77\x01", "0x77 (unknown)"},
		{"no dimension", "\x00\x00\x08\x00", "0 dimensions, want 1…4"},
		{"many dimensions", "\x00\x00\x08\x05", "5 dimensions, want 1…4"},
		{"half a dimension", "\x00\x00\x08\x01\x00\x00", "truncated: want 1 dimensions"},
		{"dimension 0", "\x00\x00\x08\x02\x00\x00\x00\x07\x00\x00\x00\x00", "dimension 1 is 0"},
		{"too large", "\x00\x00\x08\x02\x00\x01\x00\x00\x00\x01\x00\x00", "dimension 1 is 65536"},
		{"large and empty", "\x00\x00\x08\x01\x40\x00\x00\x00", "want 1073741824 bytes of data (shape [1073741824]), has 0"},
		{"too short", "\x00\x00\x08\x01\x00\x00\x00\x03ab", "want 3 bytes of data (shape [3]), has 2"},
		{"too long", "\x00\x00\x08\x01\x00\x00\x00\x03abcd", "more data than the 3 bytes"},
		{"bad gzip", "\x1f\x8bnothing of the kind", "gzip"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := readMaybeGzip(bytes.NewReader([]byte(tc.file)))
			require.ErrorContains(t, err, tc.says)
		})
	}
}

// A file that is cut anywhere, plain or compressed, is called truncated.
func TestTruncatedIDX(t *testing.T) {
	good := encodeIDX(idx{shape: []int{2, 2, 2}, data: []byte("abcdefgh")})
	for name, b := range map[string][]byte{"plain": good, "gzip": zip(good)} {
		for n := range len(b) {
			if name == "gzip" && n < 2 {
				continue // not yet known as gzip
			}
			_, err := readMaybeGzip(bytes.NewReader(b[:n]))
			require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%s, %d of %d bytes", name, n, len(b))
			require.ErrorContains(t, err, "download it again")
		}
	}
}

func FuzzIDX(f *testing.F) {
	good := encodeIDX(idx{shape: []int{2, 3}, data: []byte("abcdef")})
	f.Add(good)
	f.Add(good[:7])
	f.Add(append(good, 'g'))
	f.Add(zip(good))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := readIDX(bytes.NewReader(b))
		if err != nil {
			require.Empty(t, x)
		} else {
			require.Equal(t, b, encodeIDX(x), "what is read is what was written")
		}
		readMaybeGzip(bytes.NewReader(b))
	})
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, x idx) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, zip(encodeIDX(x)), 0o600))
		return path
	}
	pictures := func(n, side int) idx { return idx{[]int{n, side, side}, bytes.Repeat([]byte{7}, n*side*side)} }
	labels := func(n int) idx { return idx{[]int{n}, bytes.Repeat([]byte{3}, n)} }
	im14, la14 := file("im14", pictures(14, 4)), file("la14", labels(14))
	im5, la5 := file("im5", pictures(5, 4)), file("la5", labels(5))
	wide := file("wide", pictures(5, 5))
	im1, la1 := file("im1", pictures(1, 4)), file("la1", labels(1))

	c, err := load(options{images: im14, labels: la14})
	require.NoError(t, err)
	require.Equal(t, []int{12, 2, 16, 4}, []int{c.train.len(), c.test.len(), c.test.pixels, c.classes()})
	require.Len(t, c.test.images, 2*16)
	c, err = load(options{images: im14, labels: la14, testImages: im5, testLabels: la5})
	require.NoError(t, err)
	require.Equal(t, []int{14, 5}, []int{c.train.len(), c.test.len()})

	for _, tc := range []struct {
		name string
		o    options
		says string
	}{
		{"no file", options{images: filepath.Join(dir, "none"), labels: la14}, "none: no such file"},
		{"no labels", options{images: im14, labels: filepath.Join(dir, "none")}, "none: no such file"},
		{"swapped", options{images: la14, labels: im14}, "swapped?"},
		{"pictures for labels", options{images: im14, labels: im14}, "swapped?"},
		{"not as many", options{images: im14, labels: la5}, "14 pictures in"},
		{"one picture", options{images: im1, labels: la1}, "1 picture, want at least one to train"},
		{"other pixels", options{images: im14, labels: la14, testImages: wide, testLabels: la5}, "of 25"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := load(tc.o)
			require.ErrorContains(t, err, tc.says)
		})
	}
}
