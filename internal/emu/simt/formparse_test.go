package simt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/test/must"
)

// TestFormsParse: the parser reads the kernels of all forms, and Lookup gives the same Op
// for the instruction in each as for the form.
func TestFormsParse(t *testing.T) {
	for _, family := range familyNames() {
		for _, f := range forms(family) {
			if f.atomic() {
				continue
			}
			m := must.Get(ptx.Parse(f.id(), []byte(ptxOf([]form{f}))))
			want := must.Get(alu.Lookup(f.instr()))
			found := false
			for _, in := range m.Funcs[0].Body {
				if in.Name() != f.name || found {
					continue
				}
				if op, err := alu.Lookup(&in); err == nil && op.Dsts == want.Dsts && op.Srcs == want.Srcs {
					require.Equal(t, f.instr().Types, in.Types, f.id())
					found = true
				}
			}
			require.True(t, found, f.id())
		}
	}
}
