//go:build !linux

package bootstrap

import (
	"math"
	"net"
	"time"
)

// unacknowledged is not known on this system.
func unacknowledged(*net.TCPConn, time.Duration, int) (pending, silent bool) { return false, false }

// acknowledges reports whether unacknowledged knows anything.
const acknowledges = false

// machineID is "": without abstract sockets ranks cannot share results, see head.
func machineID() string { return "" }

// descriptors is math.MaxInt: the limit is not known.
func descriptors() int { return math.MaxInt }
