package command

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/internal/cli"
)

// memoryFacts tells the size of memory and of /dev/shm, and how much of each is free.
func memoryFacts() []fact {
	var facts []fact
	if total, free := cli.Meminfo("MemTotal"), cli.Meminfo("MemAvailable"); total > 0 {
		facts = append(facts, fact{"memory", fmt.Sprintf("%s, %s available", gib(total), gib(free))})
	}
	var fs unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &fs); err != nil {
		return append(facts, fact{"/dev/shm", err.Error()})
	}
	size, free := int64(fs.Blocks)*int64(fs.Bsize), int64(fs.Bavail)*int64(fs.Bsize)
	return append(facts, fact{"/dev/shm", fmt.Sprintf("%s, %s free", gib(size), gib(free))})
}

func gib(n int64) string { return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30)) }
