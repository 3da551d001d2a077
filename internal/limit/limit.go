// Package limit finds what the control groups of a process let it have of memory. On systems without them there is no
// limit.
package limit

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// System is the root of the file system; tests set another folder.
var System = "/"

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

// A Group is a control group (a container, a job of a scheduler) with a limit of memory, in bytes. Beyond the limit
// the kernel's OOM killer ends processes.
type Group struct {
	*generation
	dir   string // below base
	Limit uint64
}

// unlimited is beyond all memory. The first generation's "none" is a number near the greatest.
const unlimited = 1 << 60

// Groups finds the control groups of this process, parents included, that have a limit, as far as they can be seen
// from here.
func Groups() (all []Group) {
	b, _ := os.ReadFile(filepath.Join(System, "proc/self/cgroup")) // without one there is no limit
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
			here := Group{generation: g, dir: dir}
			var ok bool
			if here.Limit, ok = here.figure(g.max); ok && here.Limit < unlimited {
				all = append(all, here)
			}
			if dir == "/" {
				break
			}
		}
	}
	return all
}

// Name is the file that has the limit, below the mount of control groups.
func (g *Group) Name() string { return path.Join(g.dir, g.max) }

func (g *Group) file(name string) string { return filepath.Join(System, g.base, g.dir, name) }

// figure reads a file of one number.
func (g *Group) figure(name string) (n uint64, ok bool) {
	b, err := os.ReadFile(g.file(name))
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64) // "max" is none
	return n, err == nil
}

// Left is how many more bytes the group may have; short reports that this is less than enough.
func (g *Group) Left(enough uint64) (n uint64, short bool) {
	used, ok := g.figure(g.now)
	if n = g.Limit - min(used, g.Limit); !ok || n >= enough {
		return n, false
	}
	n += min(used, g.files())
	return n, n < enough
}

// files is how many bytes of the group's memory are pages of files.
func (g *Group) files() (n uint64) {
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
