package check

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
)

// Local are jobs of ranks in this process, for tests: hosts names the host of each rank. Without
// hosts it is one rank on this machine.
func Local(hosts ...string) []*Job {
	if len(hosts) == 0 {
		name, _ := os.Hostname()
		hosts = []string{name}
	}
	key := make([]byte, 32)
	rand.Read(key)
	members := make([]Member, len(hosts))
	for r, h := range hosts {
		members[r] = Member{Rank: r, Host: h, ID: fmt.Sprint("local ", h)}
	}
	jobs := make([]*Job, len(hosts))
	conns := map[int]net.Conn{}
	for r := range hosts {
		jobs[r] = newJob(r, members, key)
		if r > 0 {
			near, far := net.Pipe()
			conns[r] = near
			jobs[r].star = newRay(far, jobs[r].place(0), jobs[r].place(r))
		}
	}
	jobs[0].meetAt = "127.0.0.1:0"
	jobs[0].star = newHub(len(hosts), 0, conns)
	return jobs
}

// Alone is the job of this process, for a check of one host.
func Alone() *Job { return Local()[0] }
