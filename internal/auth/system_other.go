//go:build !linux

package auth

import "net"

// sameUser is false: this system does not say whose process called.
func sameUser(net.Conn) bool { return false }
