package check

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A fakeHost is a host that a test has made.
type fakeHost struct {
	files     map[string]string
	clock     time.Duration // ahead
	shmFree   uint64
	limits    map[string]uint64
	addresses []address
	idle      map[string]string
}

// acsConfig is the configuration space of a bridge whose ACS redirects.
func acsConfig() string {
	b := make([]byte, 0x110)
	binary.LittleEndian.PutUint32(b[0x100:], 0x0001|0x108<<20) // error reporting, next at 0x108
	binary.LittleEndian.PutUint32(b[0x108:], 0x000d)
	binary.LittleEndian.PutUint16(b[0x108+6:], 0x1d)
	return string(b)
}

// newFakeHost is a good host: two InfiniBand ports, eight GPUs on PCIe, an interface.
func newFakeHost(i int) *fakeHost {
	h := &fakeHost{
		files: map[string]string{
			"proc/sys/kernel/osrelease": "6.8.0\n", "proc/cmdline": "root=/dev/sda iommu=pt\n",
			"proc/loadavg": "3.1 2 1 1/1 1\n",
			"proc/meminfo": fmt.Sprintf("MemTotal:       %d kB\nMemFree: 5 kB\nMemAvailable:   %d "+
				"kB\n", 2113000000-1000*i, 2000000000-7000000*i),
			"sys/kernel/iommu_groups/0/type":          "identity",
			"sys/devices/system/edac/mc/mc0/ue_count": "0\n", "sys/devices/system/edac/mc/mc0/ce_count": "3\n",
			"sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "3800000\n",
			"sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq": "3800000\n",
			"sys/class/net/eth0/device/vendor":                     "0x15b3", "sys/class/net/eth0/operstate": "up\n",
			"sys/class/net/eth0/mtu": "9000\n", "sys/class/net/eth0/speed": "200000\n",
			// eth1 has no cable on any host.
			"sys/class/net/eth1/device/vendor": "0x15b3", "sys/class/net/eth1/operstate": "down\n",
			"sys/class/net/eth1/mtu":                  "1500\n",
			"sys/bus/pci/devices/0000:00:01.0/class":  "0x060400",
			"sys/bus/pci/devices/0000:00:01.0/config": strings.Repeat("\x00", 0x110),
			"sys/bus/pci/devices/0000:41:00.0/class":  "0x020000", "sys/bus/pci/devices/0000:41:00.0/current_link_width": "16",
			"sys/bus/pci/devices/0000:41:00.0/max_link_width": "16",
		},
		shmFree: 100 << 30,
		limits:  map[string]uint64{"nofile": 1 << 20, "memlock": 1<<64 - 1, "nproc": 1 << 16},
		addresses: []address{{"eth0", net.IPNet{IP: net.IPv4(10, 0, 0, byte(i+1)), Mask: net.CIDRMask(24, 32)}, 0,
			fmt.Sprint("mac", i)}},
	}
	for g := range 8 {
		h.files[fmt.Sprintf("sys/bus/pci/devices/0000:%x:00.0/class", 0xa0+g)] = "0x030200\n"
		h.files[fmt.Sprintf("sys/bus/pci/devices/0000:%x:00.0/vendor", 0xa0+g)] = "0x10de\n"
	}
	for p := range 2 {
		dir := fmt.Sprintf("sys/class/infiniband/mlx5_%d/ports/1/", p)
		maps.Copy(h.files, map[string]string{dir + "state": "4: ACTIVE\n", dir + "phys_state": "5: LinkUp\n", dir +
			"rate": "400 Gb/sec (4X NDR)\n",
			dir + "counters/symbol_error": "0\n", dir + "counters/link_downed": "1\n"})
	}
	return h
}

func (h *fakeHost) machine() *machine {
	fs := fstest.MapFS{}
	for name, text := range h.files {
		fs[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return &machine{
		FS: fs, Now: func() time.Time { return time.Now().Add(h.clock) },
		Shm:       func() (uint64, uint64, bool) { return 128 << 30, h.shmFree, h.shmFree > 0 },
		Limit:     func(name string) (uint64, bool) { v, ok := h.limits[name]; return v, ok },
		Addresses: func() ([]address, error) { return h.addresses, nil },
		Idle:      func() map[string]string { return h.idle },
	}
}

// A cluster of four hosts; something is wrong with host c, and the host stage names it, and
// nothing else.
func TestHostFaults(t *testing.T) {
	set := func(file, text string) func(*fakeHost) { return func(h *fakeHost) { h.files[file] = text } }
	remove := func(part string) func(*fakeHost) {
		return func(h *fakeHost) {
			maps.DeleteFunc(h.files, func(name, _ string) bool { return strings.Contains(name, part) })
		}
	}
	const ib = "sys/class/infiniband/mlx5_1/ports/1/"
	for _, c := range []struct {
		name  string
		wrong func(h *fakeHost)
		code  string
		part  string
		says  string
	}{
		{"nothing", func(*fakeHost) {}, "", "", ""},
		{"a clock that is ahead", func(h *fakeHost) { h.clock = 5 * time.Second }, "clock-offset", "",
			"5 s ahead of most hosts'"},
		{"a clock that is behind", func(h *fakeHost) { h.clock = -700 * time.Millisecond }, "clock-offset", "",
			"700 ms behind most hosts'"},
		{"a full /dev/shm", func(h *fakeHost) { h.shmFree = 4096 }, "shm-full", "/dev/shm", "4 KiB of 128 GiB are free"},
		{"no /dev/shm", func(h *fakeHost) { h.shmFree = 0 }, "shm-missing", "/dev/shm", "not there, and other hosts have it"},
		{"few files", func(h *fakeHost) { h.limits["nofile"] = 1024 }, "low-nofile", "limit nofile", "may open 1024 files"},
		{"little locked memory", func(h *fakeHost) { h.limits["memlock"] = 64 << 10 }, "low-memlock", "limit memlock",
			"lock 64 KiB"},
		{"few processes", func(h *fakeHost) { h.limits["nproc"] = 128 }, "low-nproc", "limit nproc", "128 threads"},
		{"another MTU", set("sys/class/net/eth0/mtu", "1500\n"), "mtu-differs", "eth0", "MTU 1500, 9000 B on 3 of 4 hosts"},
		{"an interface that is down", set("sys/class/net/eth0/operstate", "down\n"), "interface-down", "eth0",
			"down, and up on 3 of 4"},
		{"a slow interface", set("sys/class/net/eth0/speed", "25000\n"), "speed-differs", "eth0",
			"25 Gbit/s, at 200 Gbit/s on 3"},
		{"a port that is down", func(h *fakeHost) {
			h.files[ib+"state"], h.files[ib+"phys_state"] = "1: DOWN\n", "3: Disabled\n"
		}, "rdma-down", "mlx5_1:1", "DOWN (Disabled)"},
		{"a port without subnet manager", set(ib+"state", "2: INIT\n"), "rdma-init", "mlx5_1:1", "no subnet manager"},
		{"a port that negotiated less", set(ib+"rate", "200 Gb/sec (2X NDR)\n"), "rdma-slow", "mlx5_1:1",
			"200 Gbit/s, at 400 Gbit/s on 3"},
		{"symbol errors", set(ib+"counters/symbol_error", "51234\n"), "rdma-errors", "mlx5_1:1", "51234 symbol errors"},
		{"a card that is gone", remove("mlx5_1"), "rdma-missing", "", "1 RDMA ports, 2 ports on 3 of 4"},
		{"a GPU off the bus", remove("0000:a3"), "pci-gpus-differ", "", "7 GPUs on PCIe, 8 on 3 of 4"},
		{"a narrow card", set("sys/bus/pci/devices/0000:41:00.0/current_link_width", "4"), "pcie-narrow", "card 0000:41:00.0",
			"4 lanes of 16"},
		{"another IOMMU", set("proc/cmdline", "root=/dev/sda\n"), "iommu-differs", "",
			"IOMMU is on, and passes through on 3"},
		{"ACS", set("sys/bus/pci/devices/0000:00:01.0/config", acsConfig()), "acs-differs", "",
			"1 PCIe bridges have ACS redirection on, 0 on 3"},
		{"a bad DIMM", set("sys/devices/system/edac/mc/mc0/ue_count", "2\n"), "memory-errors", "memory controller 0",
			"2 memory errors"},
		{"a DIMM that goes bad", set("sys/devices/system/edac/mc/mc0/ce_count", "88123\n"), "memory-repairs",
			"memory controller 0", "88123 memory errors"},
		{"a DIMM that is missing", set("proc/meminfo", "MemTotal: 1981000000 kB\nMemAvailable: 1900000000 kB\n"),
			"less-memory", "", "the others have"},
		{"memory that is held", set("proc/meminfo", "MemTotal: 2113000000 kB\nMemAvailable: 90000 kB\n"), "no-memory", "",
			"87.9 MiB"},
		{"capped cores", set("sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq", "1900000\n"), "cpu-capped", "", "50 %"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				jobs := local("a", "b", "c", "d")
				for i, j := range jobs {
					h := newFakeHost(i)
					if i == 2 {
						c.wrong(h)
					}
					j.SetMachine(h.machine())
				}
				r, errs := runAll(t, jobs, config{Stages: []stage{hostStage()}})
				for _, err := range errs {
					require.NoError(t, err)
				}
				if c.code == "" {
					require.Empty(t, r.Findings)
					require.Equal(t, well, r.Verdict)
					return
				}
				require.Len(t, r.Findings, 1, "%v", r.Findings)
				f := r.Findings[0]
				require.Equal(t, c.code, f.Code)
				require.Equal(t, of("c", c.part), f.Subject)
				require.Contains(t, f.Text, c.says)
				require.Equal(t, f.Severity, r.Verdict)
			})
		})
	}
}

// TestHostClockOfRank0: if the clock of rank 0's own host is off, that host is named.
func TestHostClockOfRank0(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := local("a", "b", "c")
		for i, j := range jobs {
			h := newFakeHost(i)
			if i == 0 {
				h.clock = -3 * time.Second
			}
			j.SetMachine(h.machine())
		}
		r, _ := runAll(t, jobs, config{Stages: []stage{hostStage()}})
		require.Equal(t, []string{"clock-offset host a"}, codes(r))
		require.Contains(t, r.Findings[0].Text, "3 s behind")
	})
}

// This machine, as several hosts, is well.
func TestThisHost(t *testing.T) {
	r, errs := runAll(t, local("a", "a", "b"), config{Stages: []stage{hostStage()}})
	require.Equal(t, []error{nil, nil, nil}, errs)
	for _, f := range r.Findings {
		require.NotEqual(t, broken, f.Severity, "%v", f)
		require.NotEqual(t, unjudged, f.Severity, "%v", f)
	}
	require.NotEmpty(t, r.Of("host", "cores"))
}
