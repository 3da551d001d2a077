package ptx

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAssembler compares with NVIDIA's assembler: what Parse takes it takes
// too, and what Parse refuses it mostly refuses.
func TestAssembler(t *testing.T) {
	ptxas, err := exec.LookPath("ptxas")
	if err != nil {
		if strings.Contains(os.Getenv("REQUIRE"), "ptxas") {
			t.Fatal("REQUIRE has ptxas, but: ", err)
		}
		t.Skip("no ptxas, which comes with the CUDA toolkit")
	}
	file := filepath.Join(t.TempDir(), "k.ptx")
	assemble := func(text string) (string, error) {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o666))
		out, err := exec.Command(ptxas, "-arch=sm_90a", "-o", "/dev/null", file).CombinedOutput()
		return strings.ReplaceAll(string(out), file, "k.ptx"), err
	}
	newest := func(s string) string {
		return strings.Replace(in(s), "7.0\n.target sm_70", "8.3\n.target sm_90a", 1)
	}
	for _, s := range accepted {
		if out, err := assemble(newest(s)); err != nil {
			t.Errorf("%s: Parse takes it, ptxas does not: %s", s, out)
		}
	}
	for name, text := range fixtures(t) {
		m, err := Parse(name, text)
		require.NoError(t, err)
		for _, text := range []string{string(text), m.String()} {
			if out, err := assemble(text); err != nil {
				t.Errorf("%s: %s", name, out)
			}
		}
	}
	for _, c := range refused {
		if _, err := assemble(newest(c.text)); err == nil {
			t.Logf("%s: ptxas takes it, Parse does not: %s", c.text, c.want)
		}
	}
}
