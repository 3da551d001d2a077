package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/gputest"
	"github.com/ringo-go/ringo/kernels"
)

// TestResources looks at what the driver's compiler made: nothing spilled to
// memory, and registers for two blocks of combine on a multiprocessor.
func TestResources(t *testing.T) {
	d := gputest.Driver(t)
	ctx := primary(t, d)
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
		t.Logf("%v: %s: %d registers, %d blocks of %d", k.m.name, entry, registers, f.maxBlocks, f.threads)
		if local != 0 {
			t.Errorf("%v: %s: %d bytes of local memory a thread", k.m.name, entry, local)
		}
	}
	if k.m.combine.maxBlocks < 2*k.c.sms {
		t.Errorf("%v: %d blocks on %d multiprocessors", k.m.name, k.m.combine.maxBlocks, k.c.sms)
	}
	return nil
}
