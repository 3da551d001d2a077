package bootstrap

import (
	"math"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// unacknowledged reports whether the other kernel has yet to acknowledge bytes, and whether it has been silent for d
// although it was asked so many times in a row. The kernel of a stopped process answers, even when its buffers are
// full; TCP_USER_TIMEOUT would end that connection too.
func unacknowledged(c *net.TCPConn, d time.Duration, times int) (pending, silent bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return false, false
	}
	var i *unix.TCPInfo
	ctl := raw.Control(func(fd uintptr) { i, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	if ctl != nil || err != nil {
		return false, false
	}
	answered := time.Duration(i.Last_ack_recv) * time.Millisecond
	return i.Unacked > 0 || i.Notsent_bytes > 0, answered >= d && int(max(i.Retransmits, i.Probes)) >= times
}

// acknowledges reports whether unacknowledged knows anything.
const acknowledges = true

// machineID names this machine and its network namespace, to which abstract sockets belong. It is ""
// if that is not known.
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

// descriptors is how many files this process may have open, math.MaxInt if that is not known.
func descriptors() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return math.MaxInt
	}
	return int(min(l.Cur, math.MaxInt))
}
