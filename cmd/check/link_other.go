//go:build !linux

package check

import "net"

// kernelSegments knows nothing here.
func kernelSegments(*net.TCPConn) segments { return segments{} }

// packetOf takes the usual size.
func packetOf(net.Conn) packet { return packet{plainPacket - plainHeader, plainPacket} }
