package ptx

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/must"
	ask "github.com/ringo-go/ringo/internal/test/need"
)

// narrower is what Parse refuses although the assembler takes it, because no
// kernel needs it.
var narrower = []string{
	"ld.global.L1::no_allocate.nc.v4.u32 {%r1,%r2,%r3,%r4}, [%rd1];",
	"and.pred %p1, %p2, !%p3;", "mov.pred %p1, !%p2;",
	".reg .v2 .b32 %x;", ".shared .align 2 .b32 x;",
	"mov.u32 %r1, 1 ? 2 : 3;", "mov.f32 %f1, 1.0 + 2.0;",
}

// newest is in with all that the assembler knows.
func newest(instruction string) string {
	return strings.Replace(in(instruction), "7.0\n.target sm_70", "8.3\n.target sm_90a", 1)
}

// verdicts are the lines of testdata/ptxas.txt: yes or no, and the instruction.
func verdicts(t *testing.T) (head string, list [][2]string) {
	text := must.Get(os.ReadFile("testdata/ptxas.txt"))
	for line := range strings.Lines(string(text)) {
		if line[0] == '#' {
			head += line
			continue
		}
		verdict, instruction, ok := strings.Cut(strings.TrimSpace(line), " ")
		require.True(t, ok && (verdict == "yes" || verdict == "no"), line)
		list = append(list, [2]string{verdict, strings.TrimSpace(instruction)})
	}
	return head, list
}

// TestVerdicts: Parse takes what the assembler took.
func TestVerdicts(t *testing.T) {
	_, list := verdicts(t)
	for _, v := range list {
		_, err := Parse("k.ptx", []byte(newest(v[1])))
		switch {
		case v[0] == "no" && err == nil:
			t.Errorf("%s: Parse takes it, the assembler did not", v[1])
		case v[0] == "yes" && (err != nil) != slices.Contains(narrower, v[1]):
			t.Errorf("%s: the assembler took it, Parse says: %v", v[1], err)
		}
	}
}

// TestAssembler asks the assembler itself.
func TestAssembler(t *testing.T) {
	ptxas := ask.Tool(t, "ptxas")
	file := filepath.Join(t.TempDir(), "k.ptx")
	assemble := func(text string) (string, error) {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o666))
		out, err := exec.Command(ptxas, "-arch=sm_90a", "-o", "/dev/null", file).CombinedOutput()
		return strings.ReplaceAll(string(out), file, "k.ptx"), err
	}
	for _, s := range accepted {
		if out, err := assemble(newest(s)); err != nil {
			t.Errorf("%s: Parse takes it, ptxas does not: %s", s, out)
		}
	}
	for name, text := range fixtures(t) {
		m := must.Get(Parse(name, text))
		for _, text := range []string{string(text), m.String()} {
			if out, err := assemble(text); err != nil {
				t.Errorf("%s: %s", name, out)
			}
		}
	}
	head, list := verdicts(t)
	now := head
	for _, v := range list {
		verdict := "yes"
		if _, err := assemble(newest(v[1])); err != nil {
			verdict = "no"
		}
		if verdict != v[0] && !*rewrite {
			t.Errorf("%s: recorded %s, now %s", v[1], v[0], verdict)
		}
		now += fmt.Sprintf("%-3s %s\n", verdict, v[1])
	}
	if *rewrite {
		require.NoError(t, os.WriteFile("testdata/ptxas.txt", []byte(now), 0o666))
	}
	for _, c := range refused {
		if _, err := assemble(newest(c.text)); err == nil {
			t.Logf("%s: ptxas takes it, Parse does not: %s", c.text, c.want)
		}
	}
}
