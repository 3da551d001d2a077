package socket

import "golang.org/x/sys/windows"

// errReset and errAborted are the system's errors of a connection that was cut off.
const (
	errReset   = windows.WSAECONNRESET
	errAborted = windows.WSAECONNABORTED
)
