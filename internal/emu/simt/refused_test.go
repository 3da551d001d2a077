package simt_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/simt"
	"github.com/ringo-go/ringo/internal/test/must"
)

// module has a kernel with an instruction and one without.
func module(instruction string) string {
	return `.version 8.6
.target sm_90a
.address_size 64
.shared .align 16 .b8 tile[1024];
.visible .entry with(.param .u64 p)
{
	.reg .b32 %r<8>;
	.reg .b64 %rd<4>;
	.reg .f32 %f<8>;
	.reg .pred %p<2>;
	` + instruction + `
	ret;
}
.visible .entry without(.param .u64 p) { ret; }
`
}

// refusedForms are forms that PTX has and the parser knows, which compilation refuses.
var refusedForms = []struct{ what, example, sentence string }{
	{"memory in elements of 16 bytes", "ld.global.b128 %rq, [%rd0];", "elements of 16 bytes are not emulated"},
	{"tests whether an address is constant", "isspacep.const %p0, %rd0;",
		"constant memory is not apart from global memory"},
}

// TestRefused holds docs/refused.md true: the emulator refuses each row's instruction with the row's sentence, and the
// kernel alone that has it.
func TestRefused(t *testing.T) {
	var rows strings.Builder
	try := func(what, instructions, example, sentence string) {
		fmt.Fprintf(&rows, "| %s | %s | `%s` | %s |\n", what, instructions, strings.TrimSuffix(example, ";"), sentence)
		text := module(example)
		if strings.Contains(example, "%rq") {
			text = module(".reg .b128 %rq; " + example)
		}
		m, err := ptx.Parse("k.ptx", []byte(text))
		require.NoError(t, err, example)
		p := simt.CompileEach(m)
		require.NoError(t, p.Unable("without"), example)
		err = p.Unable("with")
		require.Error(t, err, example)
		assert.ErrorContains(t, err, sentence)
		assert.ErrorContains(t, err, fmt.Sprintf("%q", strings.TrimSuffix(example, ";")), "the text of the instruction")
	}
	for _, a := range ptx.Absences {
		names := "`" + strings.ReplaceAll(a.Ops, " ", "`, `") + "`"
		if a.Mods != "" {
			names += " with `." + strings.ReplaceAll(a.Mods, " ", "`, `.") + "`"
		}
		try(a.What, names, a.Example, fmt.Sprintf("%s: not emulated, expected %s", a.What, a.Instead))
	}
	for _, f := range refusedForms {
		name, _, _ := strings.Cut(f.example, " ")
		try(f.what, "`"+name+"`", f.example, f.sentence)
	}
	const file, head = "../../../docs/refused.md", "|---|---|---|---|\n"
	text := must.Get(os.ReadFile(file))
	before, after, ok := strings.Cut(string(text), head)
	require.True(t, ok)
	_, after, _ = strings.Cut(after, "\n\n")
	want := before + head + rows.String() + "\n" + after
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(text), "after a change that is meant: go test ./internal/emu/simt -run TestRefused -rewrite")
}
