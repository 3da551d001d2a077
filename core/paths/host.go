package paths

import (
	"os"
	"strings"
)

// HostID is the identity of this process's host. Processes that cannot share memory have different ones: those under
// another kernel and, in containers, those in another network namespace, where the sockets that hand over shared memory
// are not seen. The part before the first / is the host's name.
func HostID() string {
	name, _ := os.Hostname()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	netns, _ := os.Readlink("/proc/self/ns/net")
	return strings.Join([]string{name, strings.TrimSpace(string(boot)), netns}, "/")
}
