package cuda_test

import (
	"os"
	"testing"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/cudatest"
	"github.com/ringo-go/ringo/internal/test/need"
)

// gpu is the real driver. It is opened only where REQUIRE=cuda asks for it: the
// emulator passes the same tests everywhere.
func gpu(t testing.TB) cuda.Driver {
	t.Helper()
	if !need.Required("cuda") {
		t.Skip("needs REQUIRE=cuda and a GPU")
	}
	d, err := cuda.Open(os.Getenv("RINGO_CUDA_LIBRARY"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestConformance(t *testing.T) { cudatest.Run(t, gpu) }
