package verbs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/rdma"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/transporttest"
)

// mapperOptions are the options of a rank on a device of a mapper.
func mapperOptions(tb testing.TB, cfg transport.Config) Options {
	m, err := rdma.OpenMapper()
	require.NoError(tb, err)
	o := deviceOptions(cfg)
	o.Verbs = m
	return o
}

func TestDevicePlaced(t *testing.T) {
	needDevice(t)
	for name, memory := range map[string]func(testing.TB, int) transporttest.Slots{"host": transporttest.HostSlots,
		"file": transporttest.FileSlots} {
		t.Run(name, func(t *testing.T) {
			transporttest.Placed(t,
				func(tb testing.TB, cfg transport.Config) transport.Transport { return New(cfg, mapperOptions(tb, cfg)) }, memory)
		})
	}
}

// Placed connections pass the suite of all transports.
func TestDevicePlacedConformance(t *testing.T) {
	needDevice(t)
	transporttest.Conformance(t, func(tb testing.TB, cfg transport.Config) transport.Transport {
		return placements["GPU"].open(tb, cfg, mapperOptions(tb, cfg))
	}, loose)
}

// Registering a dma-buf with a device that takes none, such as software RoCE, is an error that says so.
func TestDeviceNoDMABuf(t *testing.T) {
	needDevice(t)
	tr := New(transport.Config{Limits: few}, Options{})
	defer tr.Close()
	_, err := tr.Register(transporttest.FileSlots(t, 8192).Memory)
	require.ErrorContains(t, err, "GPU memory: ibv_reg_dmabuf_mr: ")
	require.ErrorContains(t, err, "and by its address: ibv_reg_mr: ")
	t.Log(err)
}
