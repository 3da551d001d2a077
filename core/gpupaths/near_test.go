package gpupaths

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/gputest"
)

func TestApart(t *testing.T) {
	const gpu = "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:19:00.0"
	for card, want := range map[string]Distance{
		"/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:1a:00.0":                           PIX,
		"/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:04.0/0000:1b:00.0/0000:1c:01.0/0000:1d:00.0": PXB,
		"/sys/devices/pci0000:15/0000:15:03.0/0000:20:00.0":                                                     PHB,
		"/sys/devices/pci0000:37/0000:37:01.0/0000:38:00.0":                                                     SYS,
		"/sys/devices/virtual/net/lo":                                                                           SYS,
	} {
		require.Equal(t, want, apart(gpu, card), card)
		require.Equal(t, want, apart(card, gpu), card)
	}
}

func TestLevel(t *testing.T) {
	for s, want := range map[string]Distance{"": PHB, "LOC": LOC, "NVL": LOC, "PIX": PIX, "PXB": PXB, "PXN": PXB, "PHB": PHB, "SYS": SYS} {
		require.Equal(t, want, levelOf(s), s)
	}
	d := gputest.Driver(t)
	require.NoError(t, far(d, cuda.Device(0), []string{"no such card"}, ""), "unknown is near")
	require.ErrorContains(t, far(d, cuda.Device(0), nil, "LOC"), "NCCL_NET_GDR_LEVEL is LOC")
}
