package shm

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// system is the root of the file system; tests set another folder.
var system = "/"

// A generation of control groups keeps the figures of memory in its own files.
type generation struct {
	base             string // where it is mounted
	max, now         string
	inactive, active string // in memory.stat: pages of files, which the kernel can reclaim
}

var (
	first = generation{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ",
		"total_active_file "}
	second = generation{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file ", "active_file "}
)

// A group is a control group (a container, a job of a scheduler) with a limit of memory, in bytes. Beyond the limit
// the kernel's OOM killer ends processes.
type group struct {
	*generation
	dir   string // below base
	limit uint64
}

// unlimited is beyond all memory. The first generation's "none" is a number near the greatest.
const unlimited = 1 << 60

// limited finds the control groups of this process, parents included, that have a limit, as far as they can be seen
// from here.
func limited() (all []group) {
	b, _ := os.ReadFile(filepath.Join(system, "proc/self/cgroup")) // without one there is no limit
	for line := range strings.Lines(string(b)) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, dir, _ := strings.Cut(rest, ":")
		var g *generation
		switch {
		case slices.Contains(strings.Split(controllers, ","), "memory"):
			g = &first
		case id == "0" && controllers == "":
			g = &second
		default:
			continue
		}
		for dir = path.Clean("/" + dir); ; dir = path.Dir(dir) {
			here := group{generation: g, dir: dir}
			var ok bool
			if here.limit, ok = here.figure(g.max); ok && here.limit < unlimited {
				all = append(all, here)
			}
			if dir == "/" {
				break
			}
		}
	}
	return all
}

func (g *group) file(name string) string { return filepath.Join(system, g.base, g.dir, name) }

// figure reads a file of one number.
func (g *group) figure(name string) (n uint64, ok bool) {
	b, err := os.ReadFile(g.file(name))
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64) // "max" is none
	return n, err == nil
}

// left is how many more bytes the group may have; short reports that this is less than enough.
func (g *group) left(enough uint64) (n uint64, short bool) {
	used, ok := g.figure(g.now)
	if n = g.limit - min(used, g.limit); !ok || n >= enough {
		return n, false
	}
	n += min(used, g.files())
	return n, n < enough
}

// files is how many bytes of the group's memory are pages of files.
func (g *group) files() (n uint64) {
	b, _ := os.ReadFile(g.file("memory.stat"))
	for line := range strings.Lines(string(b)) {
		for _, name := range []string{g.inactive, g.active} {
			if s, ok := strings.CutPrefix(line, name); ok {
				v, _ := strconv.ParseUint(strings.TrimSpace(s), 10, 64)
				n += v
			}
		}
	}
	return n
}

// room is the reason why this process cannot have size bytes more of memory, nil if it can.
func (t *Transport) room(size int) error {
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) == nil && uint64(size) > uint64(s.Totalram)*uint64(s.Unit) {
		return fmt.Errorf("shared memory: %s needed, the host has not so much: %s: %w", bytes(size), remedy, unix.ENOMEM)
	}
	for _, g := range t.groups() {
		if left, short := g.left(uint64(size)); short {
			return fmt.Errorf("shared memory: %s needed, the container has %s left of %s (control group's %s): allow it more "+
				"memory, %s: %w",
				bytes(size), bytes(left), bytes(g.limit), path.Join(g.dir, g.max), remedy, unix.ENOMEM)
		}
	}
	return nil
}

const remedy = "use smaller slots, or sockets"
