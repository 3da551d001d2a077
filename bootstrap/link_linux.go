package bootstrap

import (
	"math"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// unanswered is how many tries in a row a host must have left without an answer.
const unanswered = 3

// unacknowledged reports whether the other kernel has yet to acknowledge what was sent, and whether it has been silent
// for d although it was asked. The kernel of a process that is stopped answers, also where there is no room for more.
// TCP_USER_TIMEOUT would end that connection too.
func unacknowledged(c *net.TCPConn, d time.Duration) (pending, silent bool) {
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
	return i.Unacked > 0 || i.Notsent_bytes > 0, answered >= d && max(i.Retransmits, i.Probes) >= unanswered
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
