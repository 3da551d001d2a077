//go:build !linux

package check

import "net"

// countSegments knows nothing here.
func countSegments(net.Conn) segments { return segments{} }
