package simt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// An index beyond a shared variable finds no other one, whatever the access.
func TestRedZones(t *testing.T) {
	const vars = ".shared .align 4 .b8 a[32]; .shared .align 4 .b8 b[32]; st.shared.u32 [b], 1; st.shared.u32 [a+28], 1; "
	for _, c := range []struct{ name, body, want string }{
		{"the last word", "ld.shared.u32 %r2, [a+28];", ""},
		{"load", "ld.shared.u32 %r2, [a+32];", "0 bytes behind the end of a"},
		{"store", "st.shared.u32 [a+36], 1;", "4 bytes behind the end of a"},
		{"atomic operation", "atom.shared.add.u32 %r2, [a+32], 1;", "0 bytes behind the end of a"},
		{"vector that reaches beyond", "ld.shared.v2.u32 {%r2, %r3}, [a+32];", "0 bytes behind the end of a"},
		{"generic address", "mov.u64 %rd2, a; cvta.shared.u64 %rd2, %rd2; ld.u32 %r2, [%rd2+40];", "8 bytes behind the end of a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := boot(t, hand(vars+c.body), options{})
			g := m.grid("k", 1, 1, m.words(sequence(96, 1)...), 5)
			m.start(g)
			if c.want == "" {
				require.Nil(t, g.Fault())
				return
			}
			require.NotNil(t, g.Fault())
			require.Equal(t, weakmem.OutOfBounds, g.Fault().Kind)
			require.Contains(t, g.Fault().Detail, "the block has 64 bytes of shared memory")
			require.Contains(t, g.Fault().Detail, c.want)
		})
	}
}
