package ptx

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestRandomKernels prints and parses kernels of random instructions in random
// blocks, whose labels and registers hide others.
func TestRandomKernels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SampledFrom([]string{"a", "b", "%r1", "%r2", "tile", "k", "a$1"})
		var text strings.Builder
		depth := 0
		declared := []map[string]bool{{"%r1": true, "%r2": true}}
		for range rapid.IntRange(0, 30).Draw(t, "statements") {
			name := names.Draw(t, "name")
			here := declared[depth]
			switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
			case kind == 0 && depth < 5:
				text.WriteString("{\n")
				declared = append(declared, map[string]bool{})
				depth++
			case kind == 1 && depth > 0:
				text.WriteString("}\n")
				declared = declared[:depth]
				depth--
			case kind == 2 && !here[name]:
				here[name] = true
				fmt.Fprintf(&text, ".reg .b32 %s; mov.u32 %s, %d;\n", name, name, rapid.Int64().Draw(t, "value"))
			case kind == 3 && !here[name] && name[0] != '%':
				here[name] = true
				fmt.Fprintf(&text, "%s: @!%%p1 bra %s;\n", name, name)
			default:
				fmt.Fprintf(&text, "@%%p2 add.s32 %%r3, %%r3, %d;\n", rapid.Int32().Draw(t, "addend"))
			}
		}
		text.WriteString(strings.Repeat("}\n", depth))
		m, err := Parse("random", []byte(in(text.String())))
		require.NoError(t, err, "%s", text.String())
		roundTrip(t, m)
	})
}
