// How far cards are from GPUs.

package gpupaths

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
	for s, want := range map[string]Distance{"": PHB, "LOC": LOC, "NVL": LOC, "PIX": PIX, "PXB": PXB, "PXN": PXB,
		"PHB": PHB, "SYS": SYS} {
		require.Equal(t, want, levelOf(s), s)
	}
}

// far judges the cards over which data go, or the nearest card where nobody knows which it is.
func TestFar(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	defer WithSysfs(root)()
	device := func(bus string, links ...string) string {
		at := filepath.Join(root, "devices", bus)
		require.NoError(t, os.MkdirAll(at, 0o700))
		for _, l := range links {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, l)), 0o700))
			require.NoError(t, os.Symlink(at, filepath.Join(root, l)))
		}
		return at
	}
	gpu := device("pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:19:00.0")
	device("pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:1a:00.0", "class/infiniband/fx0/device")
	device("pci0000:15/0000:15:03.0/0000:20:00.0", "class/net/fx1/device")
	device("pci0000:37/0000:37:01.0/0000:38:00.0", "class/infiniband/fx2/device")
	require.NoError(t, far(gpu, []string{"fx0:1", "fx1:1"}, false, ""))
	require.NoError(t, far(gpu, []string{"fx2:1", "fx0:1"}, true, ""))
	require.NoError(t, far(gpu, []string{"fx2:1"}, false, "SYS"))
	require.NoError(t, far(gpu, []string{"no such card"}, false, ""), "unknown is near")
	require.NoError(t, far("", []string{"fx2:1"}, false, ""), "unknown is near")
	require.EqualError(t, far(gpu, []string{"fx0:1", "fx2:1"}, false, ""),
		"fx2:1, over which data go, is SYS from the GPU and may be PHB: NCCL_NET_GDR_LEVEL=SYS allows it")
	require.EqualError(t, far(gpu, []string{"fx2:1", "fx1:1"}, true, "PIX"),
		"fx1:1, the nearest card, is PHB from the GPU and may be PIX: NCCL_NET_GDR_LEVEL=PHB allows it")
	require.ErrorContains(t, far("", nil, false, "LOC"), "NCCL_NET_GDR_LEVEL is LOC")

	d := fakeDevice(t)
	bus, err := d.Driver().DeviceGetPCIBusId(d.Handle())
	require.NoError(t, err)
	near := Near(d)
	require.Equal(t, int(SYS), near("fx0"), "unknown is the last")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "bus/pci/devices"), 0o700))
	require.NoError(t, os.Symlink(gpu, filepath.Join(root, "bus/pci/devices", strings.ToLower(bus))))
	require.Equal(t, gpu, placeOf(d.Driver(), d.Handle()))
	require.Empty(t, placeOf(d.Driver(), 99), "of no device")
	near = Near(d)
	require.Equal(t, []int{int(PIX), int(PHB), int(SYS), int(SYS)},
		[]int{near("fx0"), near("fx1"), near("fx2"), near("fx3")})
	require.Nil(t, Near(nil))
}
