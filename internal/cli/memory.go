package cli

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
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

// Free returns the bytes of memory that a process may still take by the system and by its control group; 0 if that
// cannot be told.
func Free() int64 {
	free := Meminfo("MemAvailable")
	for _, group := range [][2]string{
		{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
		{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"},
	} {
		most, err := number(group[0])
		used, e := number(group[1])
		if err == nil && e == nil && (free == 0 || most-used < free) {
			free = max(1, most-used)
		}
	}
	return free
}

func number(file string) (int64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
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
