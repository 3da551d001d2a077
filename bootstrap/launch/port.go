package launch

import (
	"fmt"
	"net"
)

// freePort is a port of loopback that was free a moment ago. It is for
// MASTER_PORT, which programs bind without SO_REUSEPORT, so the port cannot be
// reserved for them.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
