package command

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// memoryFacts tells the size of memory and of /dev/shm, and how much of each is free.
func memoryFacts() []fact {
	var facts []fact
	if total, free := meminfo("MemTotal"), meminfo("MemAvailable"); total != "" {
		facts = append(facts, fact{"memory", fmt.Sprintf("%s, %s available", total, free)})
	}
	var fs unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &fs); err != nil {
		return append(facts, fact{"/dev/shm", err.Error()})
	}
	size, free := int64(fs.Blocks)*int64(fs.Bsize), int64(fs.Bavail)*int64(fs.Bsize)
	return append(facts, fact{"/dev/shm", fmt.Sprintf("%s, %s free", gib(size), gib(free))})
}

func gib(n int64) string { return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30)) }

// meminfo is the size on a line of /proc/meminfo, which counts in kB; "" if there is no such line.
func meminfo(name string) string {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), name+":"); ok {
			var kb int64
			fmt.Sscan(rest, &kb)
			return gib(kb << 10)
		}
	}
	return ""
}
