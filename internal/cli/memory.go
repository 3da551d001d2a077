package cli

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/ringo-go/ringo/internal/limit"
)

// Fits returns a UsageError if work that takes so many bytes of memory does not fit into what is free: the kernel might
// end another program for it. format and a say what asks for that much.
func Fits(bytes int64, format string, a ...any) error {
	if free := Free(); free > 0 && bytes > free {
		return Usagef("%s: it takes about %s of memory, and %s are free here", fmt.Sprintf(format, a...), gib(bytes),
			gib(free))
	}
	return nil
}

func gib(n int64) string { return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30)) }

// Free returns the bytes of memory that a process may still take by the system and by its control groups; 0 if that
// cannot be told.
func Free() int64 {
	free := Meminfo("MemAvailable")
	for _, g := range limit.Groups() {
		if left, _ := g.Left(math.MaxUint64); free == 0 || int64(left) < free {
			free = max(1, int64(left))
		}
	}
	return free
}

// Meminfo returns the bytes on a line of /proc/meminfo, which counts in kB; 0 if there is no such line.
func Meminfo(name string) int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), name+":"); ok {
			var kb int64
			fmt.Sscan(rest, &kb)
			return kb << 10
		}
	}
	return 0
}
