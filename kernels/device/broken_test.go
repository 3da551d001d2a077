package device

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/ptx"
	"github.com/ringo-go/ringo/mem"
)

// TestBroken: the emulator finds faults that are put into the kernels on purpose.
func TestBroken(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("a GPU would not say what is wrong, but stop working")
	}
	tests := []struct {
		name         string
		pattern, new string
		want         weakmem.FaultKind
	}{
		{"stores lie an element beyond", `(st\.global\.u32 \[%rd\d+)\]`, "$1+4]", weakmem.OutOfBounds},
		{"loads lie a vector beyond", `(ld\.global\.cs\.v4\.u32 .*\[%rd\d+)\]`, "$1+16]", weakmem.OutOfBounds},
		{"vectors lie an element beyond", `(st\.global\.cs\.v4\.u32 \[%rd\d+)\]`, "$1+4]", weakmem.Misaligned},
		{"all blocks do the same", `%ctaid\.x`, "0", weakmem.Race},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := gputest.Driver(t, gputest.Faults())
			_, ctx := gputest.Context(t, d, 0)
			c, err := New(d, ctx)
			require.NoError(t, err)
			defer c.Close()
			c.text = func(n ptx.Name) ([]byte, error) {
				text, err := ptx.Text(n)
				broken := regexp.MustCompile(test.pattern).ReplaceAll(text, []byte(test.new))
				require.NotEqual(t, string(text), string(broken))
				return broken, err
			}
			require.NoError(t, cuda.With(d, ctx, func() error {
				const n = 64<<10 + 4
				r, _ := buffers(t, d, int(c.device), kernels.Int32, n, 3)
				k, err := c.Kernel(reducer(t, kernels.Int32, kernels.Sum, 2))
				require.NoError(t, err)
				var to []mem.Region
				for _, x := range r { // an element before the vectors and one after
					defer d.MemFree(x.Ptr()) // in vain where the context is lost
					to = append(to, x.Slice(12, n-12))
				}
				_ = k.Launch(0, &Args{Dst: to[0], Srcs: to})
				_ = d.CtxSynchronize()
				return nil
			}))
			var found []weakmem.FaultKind
			for _, f := range d.(*cudaemu.Machine).Reports() {
				found = append(found, f.Kind)
				require.Equal(t, "combine_int32_sum", f.Kernel)
				require.NotZero(t, f.Line)
			}
			require.Contains(t, found, test.want)
		})
	}
}
