package ringotest

import (
	"os"
	"path/filepath"
	"strings"
)

// files are this process's descriptors, by number, but for those of the runtime's poller.
func files() map[string]string {
	names, _ := filepath.Glob("/proc/self/fd/*")
	m := map[string]string{}
	for _, n := range names {
		what, err := os.Readlink(n)
		if err == nil && !strings.HasPrefix(what, "anon_inode:") && !strings.HasPrefix(what, "/proc/") {
			m[filepath.Base(n)] = what
		}
	}
	return m
}
