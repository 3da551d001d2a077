package alu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cudaemu"
)

// TestEmulator runs the kernels of all forms on an emulated GPU, which has to
// give what the real one gave.
func TestEmulator(t *testing.T) {
	m, err := cudaemu.New(cudaemu.Config{Plain: true, Lazy: true})
	require.NoError(t, err)
	defer m.Close()
	g, err := newGPU(m)
	require.NoError(t, err)
	for _, family := range familyNames() {
		list := forms(family)
		results, errs := g.runAll(list)
		require.Empty(t, errs)
		gold, err := readGoldens("testdata", family)
		if family == "atomic" && err != nil {
			continue // TODO: not recorded yet
		}
		require.NoError(t, err)
		for i, f := range list {
			t.Run(f.id(), func(t *testing.T) { compare(t, &f, results[i], gold.results[f.id()]) })
		}
	}
}
