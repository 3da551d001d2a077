//go:build !linux

package check

import (
	"net"
	"time"
)

// kernelSegments knows nothing here.
func kernelSegments(net.Conn) segments { return segments{} }

// packetOf takes the usual size.
func packetOf(net.Conn) packet { return packet{plainPacket - plainHeader, plainPacket} }

// kernelAcknowledges knows nothing here.
func kernelAcknowledges(net.Conn, time.Duration) (known, yes bool) { return false, false }
