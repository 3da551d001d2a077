package bootstrap

import "encoding/binary"

// fields reads the body of a message from the front. After the first fault all
// reads return zeros, so that callers check once, with end.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) take(n int) []byte {
	if f.bad || n < 0 || n > len(f.b) {
		f.bad = true
		return nil
	}
	v := f.b[:n:n]
	f.b = f.b[n:]
	return v
}

func (f *fields) u8() byte {
	if v := f.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (f *fields) flag() bool {
	v := f.u8()
	f.bad = f.bad || v > 1
	return v == 1
}

func (f *fields) u32() uint32 {
	if v := f.take(4); v != nil {
		return binary.BigEndian.Uint32(v)
	}
	return 0
}

func (f *fields) u64() uint64 {
	if v := f.take(8); v != nil {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

// rank reads a rank, or -1 for nobody.
func (f *fields) rank() int {
	v := int32(f.u32())
	if v < -1 || v >= maxRanks {
		f.bad = true
		return 0
	}
	return int(v)
}

// count reads a number of at most limit.
func (f *fields) count(limit int) int {
	v := f.u32()
	if uint64(v) > uint64(limit) {
		f.bad = true
		return 0
	}
	return int(v)
}

func (f *fields) ranks() []int {
	n := f.count(max(len(f.b)-4, 0) / 4)
	var v []int
	for range n {
		v = append(v, f.rank())
	}
	return v
}

func (f *fields) blob(limit int) []byte {
	return f.take(f.count(limit))
}

func (f *fields) text() string { return string(f.blob(maxText)) }

func (f *fields) end() error {
	if f.bad || len(f.b) != 0 {
		return errMalformed
	}
	return nil
}

func appendU32(b []byte, v int) []byte { return binary.BigEndian.AppendUint32(b, uint32(int32(v))) }

func appendU64(b []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(b, v) }

func appendBlob(b, v []byte) []byte { return append(appendU32(b, len(v)), v...) }

// appendText appends a text, cut to the longest that a message carries.
func appendText(b []byte, s string) []byte {
	return appendBlob(b, []byte(s[:min(len(s), maxText)]))
}

func appendRanks(b []byte, v []int) []byte {
	b = appendU32(b, len(v))
	for _, r := range v {
		b = appendU32(b, r)
	}
	return b
}

func appendFlag(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}
