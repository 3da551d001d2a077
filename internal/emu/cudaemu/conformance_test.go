package cudaemu_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/cudatest"
	"github.com/ringo-go/ringo/internal/test/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open is a machine that must not have leaked anything at the end of the test.
func open(t testing.TB, cfg cudaemu.Config) *cudaemu.Machine {
	t.Helper()
	m := must.Get(cudaemu.New(cfg))
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

func TestConformance(t *testing.T) {
	cudatest.Run(t, func(t testing.TB) cuda.Driver {
		m := open(t, cudaemu.Config{Devices: 2, Seed: 1, RDMA: true})
		t.Cleanup(func() {
			for _, f := range m.Reports() {
				if os.Getenv("CUDATEST_ROLE") == "fault" {
					t.Log(f)
				} else {
					t.Error(f)
				}
			}
		})
		return m
	})
}

func TestConformancePlain(t *testing.T) {
	cudatest.Run(t, func(t testing.TB) cuda.Driver {
		return open(t, cudaemu.Config{Devices: 2, Plain: true})
	})
}
