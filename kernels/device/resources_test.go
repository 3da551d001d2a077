package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/kernels"
)

// TestResources looks at the result of the driver's compiler: two blocks of combine fit on a multiprocessor, as full
// bandwidth needs, and few bytes of registers are spilled; those outside of the loop cost nothing.
func TestResources(t *testing.T) {
	d := gputest.Driver(t)
	_, ctx := gputest.Context(t, d, 0)
	seen := map[string]bool{}
	for _, c := range combiners(t, d, ctx) {
		for _, ty := range kernels.Types() {
			for _, op := range ops(ty) {
				k, err := c.Kernel(reducer(t, ty, op, 3))
				require.NoError(t, err)
				if name := k.m.name.String(); !seen[name] {
					seen[name] = true
					require.NoError(t, cuda.With(d, ctx, func() error { return resources(t, d, &k) }))
				}
			}
		}
	}
}

// mostLocal is the most bytes of spilled registers: drivers' compilers differ, 24 bytes were seen.
const mostLocal = 32

func resources(t *testing.T, d cuda.Driver, k *Kernel) error {
	for entry, f := range map[string]kernel{k.m.name.Combine(): k.m.combine, k.m.name.Plain(): k.m.plain} {
		local, err := d.FuncGetAttribute(cuda.FuncLocalBytes, f.f)
		if err != nil {
			return err
		}
		registers, err := d.FuncGetAttribute(cuda.FuncRegisters, f.f)
		if err != nil {
			return err
		}
		t.Logf("%v: %s: %d registers, %d bytes of local memory a thread, %d blocks of %d",
			k.m.name, entry, registers, local, f.maxBlocks, f.threads)
		if local > mostLocal {
			t.Errorf("%v: %s: %d bytes of local memory a thread, want at most %d", k.m.name, entry, local, mostLocal)
		}
	}
	if k.m.combine.maxBlocks < 2*k.c.sms {
		t.Errorf("%v: %d blocks on %d multiprocessors", k.m.name, k.m.combine.maxBlocks, k.c.sms)
	}
	return nil
}
