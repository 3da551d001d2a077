package shm

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/limit"
	"github.com/ringo-go/ringo/transport"
)

// TestLimits: a container's limit is checked before memory is taken, and the refusal names the limit's group.
func TestLimits(t *testing.T) {
	const v1, v2 = "sys/fs/cgroup/memory/", "sys/fs/cgroup/"
	for name, c := range map[string]struct {
		files map[string]string
		says  string // "" is room
	}{
		"no groups": {},
		"none is set": {map[string]string{"proc/self/cgroup": "0::/a\n", v2 + "a/memory.max": "max\n", v2 +
			"a/memory.current": "5\n"}, ""},
		"enough": {map[string]string{"proc/self/cgroup": "0::/a\n", v2 + "a/memory.max": "200000000\n", v2 +
			"a/memory.current": "1000000\n"}, ""},
		"of its own": {map[string]string{"proc/self/cgroup": "0::/\n", v2 + "memory.max": "104857600\n", v2 +
			"memory.current": "62914560\n"},
			"64 MiB needed, the container has 40 MiB left of 100 MiB (control group's /memory.max)"},
		"of a parent": {map[string]string{"proc/self/cgroup": "0::/a/b\n", v2 + "a/b/memory.max": "max", v2 +
			"a/b/memory.current": "1", v2 + "a/memory.max": "104857600", v2 + "a/memory.current": "209715200"},
			"has 0 bytes left of 100 MiB (control group's /a/memory.max)"},
		"files go": {map[string]string{"proc/self/cgroup": "0::/\n", v2 + "memory.max": "104857600\n", v2 +
			"memory.current": "104857600\n", v2 +
			"memory.stat": "anon 7\nfile 99999999\ninactive_file 41943040\nactive_file 41943040\n"}, ""},
		"first": {map[string]string{"proc/self/cgroup": "5:cpu:/x\n4:memory,y:/docker/1\n0::/\n", v1 +
			"docker/1/memory.limit_in_bytes": "104857600\n", v1 + "docker/1/memory.usage_in_bytes": "62914560\n"},
			"40 MiB left of 100 MiB (control group's /docker/1/memory.limit_in_bytes)"},
		"first, inside": {map[string]string{"proc/self/cgroup": "4:memory:/docker/1\n", v1 +
			"memory.limit_in_bytes": "104857600\n", v1 + "memory.usage_in_bytes": "94371840\n", v1 +
			"memory.stat": "inactive_file 41943040\ntotal_inactive_file 1048576\n"},
			"11 MiB left of 100 MiB (control group's /memory.limit_in_bytes)"},
		"first, none": {map[string]string{"proc/self/cgroup": "4:memory:/\n", v1 +
			"memory.limit_in_bytes": "9223372036854771712\n", v1 + "memory.usage_in_bytes": "94371840\n"}, ""},
		"outside": {map[string]string{"proc/self/cgroup": "0::/../../a\n", v2 + "memory.max": "1000000\n", v2 +
			"memory.current": "0\n"}, "left of 976 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range c.files {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(text), 0o600))
			}
			limit.System = root
			defer func() { limit.System = "/" }()
			for _, dir := range []string{"", t.TempDir()} {
				tr := New(transport.Config{Limits: transport.Limits{SlotBytes: 16 << 20, Slots: 4}}, Options{Dir: dir, Queues: 3})
				_, err := tr.Listen()
				require.NoError(t, tr.Close())
				if c.says == "" {
					require.NoError(t, err)
					continue
				}
				require.ErrorIs(t, err, unix.ENOMEM)
				require.ErrorContains(t, err, c.says)
				require.ErrorContains(t, err, "allow it more memory, use smaller slots, or sockets")
			}
		})
	}
}

// TestGrowsWithUse: a queue takes what its messages need.
func TestGrowsWithUse(t *testing.T) {
	g := fifo.Geometry{Slots: 8, SlotBytes: 1 << 20}
	f := must(allocate(g.Size(), ""))
	defer f.Close()
	memory, err := share(int(f.Fd()), g.Size())
	require.NoError(t, err)
	defer unix.Munmap(memory)
	p, err := fifo.NewProducer(memory, g, fifo.Waiting{})
	require.NoError(t, err)
	c, err := fifo.NewConsumer(memory, g, fifo.Waiting{})
	require.NoError(t, err)
	taken := func() int64 {
		var s unix.Stat_t
		require.NoError(t, unix.Fstat(int(f.Fd()), &s))
		return s.Blocks * 512
	}
	for _, step := range []struct {
		n    int
		most int64
	}{{40, 4 << 10}, {5000, 68 << 10}, {1 << 20, 8<<20 + 4<<10}} {
		for range 3 * g.Slots {
			b, err := p.Reserve(step.n)
			require.NoError(t, err)
			clear(b.Bytes())
			require.NoError(t, p.Publish(fifo.Stamp{}))
			_, _, err = c.Next()
			require.NoError(t, err)
			require.NoError(t, c.Release())
		}
		require.LessOrEqual(t, taken(), step.most, step.n)
	}
}
