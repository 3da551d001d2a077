package paths

import (
	"os"
	"strings"
)

// HostID tells apart nodes whose processes cannot share memory: another kernel, or, for containers, another network
// namespace, where the sockets that hand over shared memory are not seen. The part before the first / is the host's
// name.
func HostID() string {
	name, _ := os.Hostname()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	netns, _ := os.Readlink("/proc/self/ns/net")
	return strings.Join([]string{name, strings.TrimSpace(string(boot)), netns}, "/")
}
