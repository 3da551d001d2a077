package simt_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/test/must"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
)

// convertEach executes a conversion on many words, a source a word.
func convertEach(t *testing.T, name string, words []uint64) []uint64 {
	op := must.Get(alu.Lookup(instr(name)))
	out := make([]uint64, len(words))
	var d, a, zero alu.Lanes
	src := []*alu.Lanes{&zero, &a}[2-op.Srcs:] // of two sources the second is the lower half
	for i := 0; i < len(words); i += 32 {
		n := copy(a[:], words[i:])
		op.Run(1<<32-1, []*alu.Lanes{&d}, src)
		copy(out[i:i+n], d[:])
	}
	return out
}

// TestNarrowAgainstKernels converts every value of the narrow types to float32
// and back, and every float32 whose low 13 bits are one of a few patterns to them.
func TestNarrowAgainstKernels(t *testing.T) {
	tier.Long(t)
	var all16, singles []uint64
	for v := range uint64(1 << 16) {
		all16 = append(all16, v)
	}
	for v := range uint64(1 << 19) {
		for _, low := range []uint64{0, 1, 0x0fff, 0x1000, 0x1001, 0x1fff} {
			singles = append(singles, v<<13|low)
		}
	}
	single := func(v uint64) float32 { return math.Float32frombits(uint32(v)) }
	t.Run("from f16", func(t *testing.T) {
		for i, got := range convertEach(t, "cvt.f32.f16", all16) {
			if want := kernels.F16(i).Float32(); want == want && uint32(got) != math.Float32bits(want) {
				t.Fatalf("%#x: %#x, want %#x", i, got, math.Float32bits(want))
			}
		}
	})
	t.Run("from bf16", func(t *testing.T) {
		for i, got := range convertEach(t, "cvt.f32.bf16", all16) {
			require.EqualValues(t, math.Float32bits(kernels.BF16(i).Float32()), got)
		}
	})
	t.Run("from f8", func(t *testing.T) {
		e4m3, e5m2 := convertEach(t, "cvt.rn.f16x2.e4m3x2", all16), convertEach(t, "cvt.rn.f16x2.e5m2x2", all16)
		for i := range all16 {
			low, high := kernels.F8E4M3(i).Float32(), kernels.F8E4M3(i>>8).Float32()
			require.EqualValues(t, uint32(kernels.NewF16(high))<<16|uint32(kernels.NewF16(low)), e4m3[i], "e4m3 %#x", i)
			low, high = kernels.F8E5M2(i).Float32(), kernels.F8E5M2(i>>8).Float32()
			require.EqualValues(t, uint32(kernels.NewF16(high))<<16|uint32(kernels.NewF16(low)), e5m2[i], "e5m2 %#x", i)
		}
	})
	for name, convert := range map[string]func(f float32) uint64{
		"cvt.rn.f16.f32":              func(f float32) uint64 { return uint64(kernels.NewF16(f)) },
		"cvt.rn.bf16.f32":             func(f float32) uint64 { return uint64(kernels.NewBF16(f)) },
		"cvt.rn.satfinite.e4m3x2.f32": func(f float32) uint64 { return uint64(kernels.NewF8E4M3(f)) },
		"cvt.rn.satfinite.e5m2x2.f32": func(f float32) uint64 { return uint64(kernels.NewF8E5M2(f)) },
	} {
		t.Run(name, func(t *testing.T) {
			for i, got := range convertEach(t, name, singles) {
				if want := convert(single(singles[i])); got != want {
					t.Fatalf("%#x: %#x, want %#x", singles[i], got, want)
				}
			}
		})
	}
}
