//go:build !linux

package bootstrap

import (
	"math"
	"net"
	"time"
)

// unacknowledged is not known.
func unacknowledged(*net.TCPConn, time.Duration) (pending, silent bool) { return false, false }

// machineID is where ranks hand each other what they have: nowhere without abstract sockets.
func machineID() string { return "" }

// descriptors is how many files this process may have open: not known.
func descriptors() int { return math.MaxInt }
