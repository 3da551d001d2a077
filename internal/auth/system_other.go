//go:build !linux

package auth

import "net"

func sameUser(net.Conn) bool { return false }
