package ptxcheck

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/kernels"
)

// A kind is the type of an element, by which put makes bytes of a value.
type kind struct {
	size    int
	float   bool
	signed  bool
	address bool // only an address, or 0
	narrow  func(float32) uint64
	widen   func(uint64) float32
}

func half[T ~uint8 | ~uint16](to func(float32) T, from func(T) float32) kind {
	size := 1
	if ^T(0) > 255 {
		size = 2
	}
	return kind{size: size, float: true, narrow: func(f float32) uint64 { return uint64(to(f)) },
		widen: func(b uint64) float32 { return from(T(b)) }}
}

// kinds are the types that buffers and arguments may have.
var kinds = map[string]kind{
	"u8": {size: 1}, "u16": {size: 2}, "u32": {size: 4}, "u64": {size: 8},
	"s8": {size: 1, signed: true}, "s16": {size: 2, signed: true}, "s32": {size: 4, signed: true},
	"s64": {size: 8, signed: true},
	"b8":  {size: 1}, "b16": {size: 2}, "b32": {size: 4}, "b64": {size: 8},
	"f32": {size: 4, float: true}, "f64": {size: 8, float: true},
	"f16":  half(kernels.NewF16, kernels.F16.Float32),
	"bf16": half(kernels.NewBF16, kernels.BF16.Float32),
	"e4m3": half(kernels.NewF8E4M3, kernels.F8E4M3.Float32),
	"e5m2": half(kernels.NewF8E5M2, kernels.F8E5M2.Float32),
	"ptr":  {size: 8, address: true},
}

func kindNamed(name string) (kind, error) {
	if k, ok := kinds[name]; ok {
		return k, nil
	}
	return kind{}, fmt.Errorf("unknown type %q: use %s", name, strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
}

// kindOf is the kind of a parameter of PTX.
func kindOf(t ptx.Type) kind {
	k, ok := kinds[t.String()]
	if !ok {
		k = kind{size: t.Size()}
	}
	return k
}

// put makes a value the bytes of an element.
func (k kind) put(b []byte, v value) error {
	bits := uint64(v.n)
	switch {
	case k.address && !v.address && (v.float || v.n != 0):
		return fmt.Errorf("want an address: the name of a buffer, or 0")
	case v.address && k.size != 8 || v.address && k.float:
		return fmt.Errorf("an address has 8 bytes, and this is another type")
	case k.float && k.size == 8:
		bits = math.Float64bits(v.real())
	case k.narrow != nil:
		bits = k.narrow(float32(v.real()))
	case k.float:
		bits = uint64(math.Float32bits(float32(v.real())))
	case v.float:
		return fmt.Errorf("%v is no whole number", v.f)
	case k.size < 8:
		if width := 8 * k.size; v.n < -1<<(width-1) || v.n >= 1<<width || k.signed && v.n >= 1<<(width-1) {
			return fmt.Errorf("%d does not fit into %d bits", v.n, width)
		}
	}
	for i := range k.size {
		b[i] = byte(bits >> (8 * i))
	}
	return nil
}

// text is an element for reports.
func (k kind) text(b []byte) string {
	var all [8]byte
	copy(all[:], b[:k.size])
	bits := binary.LittleEndian.Uint64(all[:])
	switch {
	case k.narrow != nil:
		return fmt.Sprint(k.widen(bits))
	case k.float && k.size == 8:
		return fmt.Sprint(math.Float64frombits(bits))
	case k.float:
		return fmt.Sprint(math.Float32frombits(uint32(bits)))
	case k.signed:
		return fmt.Sprint(int64(bits) << (64 - 8*k.size) >> (64 - 8*k.size))
	case k.address:
		return fmt.Sprintf("%#x", bits)
	}
	return fmt.Sprint(bits)
}

// contents are the bytes of n elements, from a list of expressions of i that is repeated.
func (k kind) contents(n int, text string, s scope) ([]byte, error) {
	list := split(text)
	b := make([]byte, n*k.size)
	for i := range n {
		s.element = i
		v, err := eval(list[i%len(list)], s)
		if err == nil {
			err = k.put(b[i*k.size:], v)
		}
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return b, nil
}

// split cuts a list at its commas, but not within parentheses.
func split(text string) (list []string) {
	depth, from := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				list, from = append(list, text[from:i]), i+1
			}
		}
	}
	return append(list, text[from:])
}
