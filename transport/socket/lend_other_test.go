//go:build !linux

package socket

func refuseLoans(*sendConn) {}
