package rendezvous

import (
	"encoding/binary"
	"errors"
	"math"
	"time"
)

// Limits of what a message carries.
const (
	MaxRanks  = 1 << 16
	MaxText   = 4 << 10  // a reason, a host name
	MaxBlob   = 16 << 20 // one rank's part of an AllGather
	MaxGather = 1 << 30  // all parts together
	MaxBody   = MaxGather + 8*MaxRanks
)

// ErrMalformed is the error of bytes that are no message.
var ErrMalformed = errors.New("malformed message")

// A Coder writes fields to the end of a body, or reads them from its front. Numbers are big endian; texts and blobs
// have their length, 4 bytes, before them. After the first fault all reads give zeros, so one check at the end will do.
type Coder struct {
	b       []byte
	reading bool
	bad     bool
}

// A Coded value says by code which fields it has, in which order. Writing changes nothing of the value.
type Coded interface{ code(c *Coder) }

// Append adds the encoded value to b.
func Append(b []byte, v Coded) []byte {
	c := Coder{b: b}
	v.code(&c)
	return c.b
}

// Parse reads a value that takes the whole body, to which it keeps references. It fails on every body that Append does
// not write.
func Parse(b []byte, v Coded) error {
	c := Coder{b: b, reading: true}
	v.code(&c)
	if c.bad || len(c.b) != 0 {
		return ErrMalformed
	}
	return nil
}

// check makes a body malformed that is read and does not hold a condition.
func (c *Coder) check(ok bool) { c.bad = c.bad || c.reading && !ok }

// take is the next n bytes of a body that is read, nil if there are fewer.
func (c *Coder) take(n int) []byte {
	if c.bad || n < 0 || n > len(c.b) {
		c.bad = true
		return nil
	}
	v := c.b[:n:n]
	c.b = c.b[n:]
	return v
}

// fixed codes bytes whose number is known.
func (c *Coder) fixed(v []byte) {
	if c.reading {
		copy(v, c.take(len(v)))
	} else {
		c.b = append(c.b, v...)
	}
}

// long codes a number of 8 bytes.
func long[T ~int | ~int64 | ~uint64](c *Coder, v *T) {
	if !c.reading {
		c.b = binary.BigEndian.AppendUint64(c.b, uint64(*v))
	} else if b := c.take(8); b != nil {
		*v = T(binary.BigEndian.Uint64(b))
	}
}

// within codes a number of 4 bytes that lies between two others.
func within[T ~int | ~int32](c *Coder, v *T, low, high int64) {
	if !c.reading {
		c.b = binary.BigEndian.AppendUint32(c.b, uint32(*v))
	} else if b := c.take(4); b != nil {
		n := int64(binary.BigEndian.Uint32(b))
		if low < 0 {
			n = int64(int32(n))
		}
		if c.check(n >= low && n <= high); !c.bad {
			*v = T(n)
		}
	}
}

// short codes a number of 4 bytes without a sign.
func (c *Coder) short(v *int) { within(c, v, 0, math.MaxUint32) }

// rank codes a rank, or -1 for nobody.
func (c *Coder) rank(v *int) { within(c, v, -1, MaxRanks-1) }

// count codes a number of at most limit.
func (c *Coder) count(v *int, limit int) { within(c, v, 0, int64(limit)) }

func (c *Coder) flag(v *bool) {
	var b byte
	if *v {
		b = 1
	}
	if octet(c, &b); c.reading {
		c.check(b <= 1)
		*v = b == 1
	}
}

func octet[T ~byte](c *Coder, v *T) {
	if !c.reading {
		c.b = append(c.b, byte(*v))
	} else if b := c.take(1); b != nil {
		*v = T(b[0])
	}
}

func (c *Coder) blob(v *[]byte, limit int) {
	n := len(*v)
	if c.count(&n, limit); c.reading {
		*v = c.take(n)
		return
	}
	c.b = append(c.b, *v...)
}

// text codes a text, cut to the longest that a message carries.
func (c *Coder) text(v *string) {
	b := []byte((*v)[:min(len(*v), MaxText)])
	if c.blob(&b, MaxText); c.reading {
		*v = string(b)
	}
}

// list codes a number of values, at most limit.
func list[T any](c *Coder, v *[]T, limit int, each func(*Coder, *T)) {
	n := len(*v)
	c.count(&n, limit)
	entries(c, v, n, each)
}

// entries codes n values.
func entries[T any](c *Coder, v *[]T, n int, each func(*Coder, *T)) {
	for i := 0; i < n && !c.bad; i++ {
		if c.reading {
			*v = append(*v, *new(T))
		}
		each(c, &(*v)[i])
	}
}

// all codes fields, each by its type; an int is a rank.
func (c *Coder) all(fields ...any) {
	for _, f := range fields {
		switch f := f.(type) {
		case *uint64:
			long(c, f)
		case *int:
			c.rank(f)
		case *bool:
			c.flag(f)
		case *string:
			c.text(f)
		case *time.Duration:
			long(c, f)
		case *[]int:
			list(c, f, max(len(c.b)-4, 0)/4, (*Coder).rank)
		case *[16]byte:
			c.fixed(f[:])
		case Coded:
			f.code(c)
		}
	}
}

// optional codes whether a value is there, and the value.
func optional[T any](c *Coder, v **T, code func(*Coder, *T)) {
	there := *v != nil
	if c.flag(&there); there && !c.bad {
		if c.reading {
			*v = new(T)
		}
		code(c, *v)
	}
}
