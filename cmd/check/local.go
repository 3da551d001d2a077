package check

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
)

// local are jobs of ranks in this process, for tests: hosts names the host of each rank. Without
// hosts it is one rank on this machine.
func local(hosts ...string) []*job {
	if len(hosts) == 0 {
		name, _ := os.Hostname()
		hosts = []string{name}
	}
	key := make([]byte, 32)
	rand.Read(key)
	members := make([]member, len(hosts))
	for r, h := range hosts {
		members[r] = member{Rank: r, Host: h, ID: fmt.Sprint("local ", h)}
	}
	jobs := make([]*job, len(hosts))
	conns := map[int]net.Conn{}
	for r := range hosts {
		jobs[r] = newJob(r, members, key)
		if r > 0 {
			near, far := net.Pipe()
			conns[r] = near
			jobs[r].star = newRay(far, jobs[r].component(0), jobs[r].component(r))
		}
	}
	jobs[0].star = newHub(len(hosts), 0, conns)
	return jobs
}

// alone is the job of this process, for a check of one host.
func alone() *job { return local()[0] }
