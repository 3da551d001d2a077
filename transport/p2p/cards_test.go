package p2p_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/p2p"
	"github.com/ringo-go/ringo/transport/transporttest"
)

// Memory for cards is whole pages of the driver's, and what a card writes is in it.
func TestCardMemory(t *testing.T) {
	d := gputest.Driver(t, gputest.Emu(cudaemu.Config{RDMA: true}))
	u := newUser(t, d, 0, 0, "one")
	m, err := p2p.NewCardMemory(u.config(size), true)
	if gputest.OnGPU() && err != nil {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	require.GreaterOrEqual(t, m.Bytes(), size)
	require.Equal(t, m.Bytes(), m.Memory().Len())
	require.Equal(t, int(u.dev), m.Memory().Dev())
	if gputest.OnGPU() {
		return // there is no card
	}
	require.True(t, m.Memory().Ordered)
	transporttest.Placed(t, func(tb testing.TB, cfg transport.Config) transport.Transport {
		return transporttest.NewCard(cfg, nil)
	}, func(tb testing.TB, bytes int) transporttest.Slots {
		m, err := p2p.NewCardMemory(u.config(bytes), true)
		require.NoError(tb, err)
		tb.Cleanup(func() { require.NoError(tb, m.Close()) })
		return transporttest.Slots{Memory: m.Memory(), View: transporttest.View(tb, m.Memory())}
	})
}

// A GPU that lacks something gives an error that names it, and no memory is taken.
func TestNoCardMemory(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("needs GPUs that lack something")
	}
	for _, c := range []struct {
		emu  cudaemu.Config
		want string
	}{
		{cudaemu.Config{}, "the GPU lets no network cards into its memory"},
		{cudaemu.Config{RDMA: true, DriverVersion: 11000}, "the GPU lets no network cards into its memory"},
		{cudaemu.Config{RDMA: true, Faults: []cudaemu.Injection{{Call: "cuMemCreate", Nth: 1, Result: cuda.ErrOutOfMemory}}},
			"cuMemCreate"},
		{cudaemu.Config{RDMA: true, Faults: []cudaemu.Injection{{Call: "cuMemMap", Nth: 1, Result: cuda.ErrNotSupported}}},
			"cuMemMap"},
		{cudaemu.Config{RDMA: true,
			Faults: []cudaemu.Injection{{Call: "cuMemSetAccess", Nth: 1, Result: cuda.ErrNotSupported}}}, "cuMemSetAccess"},
	} {
		d := gputest.Driver(t, gputest.Emu(c.emu))
		_, err := p2p.NewCardMemory(newUser(t, d, 0, 0, "one").config(size), true)
		require.ErrorContains(t, err, c.want)
	}
	d := gputest.Driver(t, gputest.Emu(cudaemu.Config{RDMA: true}))
	m, err := p2p.NewCardMemory(newUser(t, d, 0, 0, "one").config(size), false)
	require.NoError(t, err)
	require.Nil(t, m.Memory().DMABuf)
	require.NoError(t, m.Close())
}
