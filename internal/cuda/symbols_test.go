package cuda

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/must"
	"github.com/ringo-go/ringo/internal/test/need"
)

// The real driver knows every function by name and version, and exports it, and
// both are the same.
func TestSymbolsOfDriver(t *testing.T) {
	if !need.Required("cuda") {
		t.Skip("needs REQUIRE=cuda and a GPU")
	}
	driver := must.Get(Open(os.Getenv("RINGO_CUDA_LIBRARY")))
	d := driver.(*libcuda)
	for _, sym := range symbols {
		if sym.since > d.version {
			continue
		}
		p := d.procAddress(sym.name, sym.since)
		require.NotZero(t, p, "%s of %d", sym.name, sym.since)
		q := must.Get(d.lib.Sym(sym.export))
		if p != q { // the exports may be stubs that jump there
			t.Logf("%s: %#x, exported %#x", sym.name, p, q)
		}
	}
}
