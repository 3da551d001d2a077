//go:build !linux

package bootstrap

import (
	"errors"
	"math"
	"net"
	"time"
)

func setUserTimeout(*net.TCPConn, time.Duration) error { return errors.ErrUnsupported }

// machineID is where ranks hand each other what they have: nowhere without abstract sockets.
func machineID() string { return "" }

// descriptors is how many files this process may have open: not known.
func descriptors() int { return math.MaxInt }
