package bootstrap

import (
	"math"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// setUserTimeout ends the connection when sent bytes stay unacknowledged for
// d; keep-alive probes are not sent then, and retransmission takes minutes.
func setUserTimeout(c *net.TCPConn, d time.Duration) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	ctl := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
	})
	if ctl != nil {
		return ctl
	}
	return err
}

// machineID tells this machine and its network namespace, which abstract sockets belong to, from all
// others.
func machineID() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	space, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return ""
	}
	pids, _ := os.Readlink("/proc/self/ns/pid")
	return strings.TrimSpace(string(boot)) + " " + space + containers + pids
}

// descriptors is how many files this process may have open.
func descriptors() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return math.MaxInt
	}
	return int(min(l.Cur, math.MaxInt))
}
