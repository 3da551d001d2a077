package socket

import "golang.org/x/sys/windows"

const (
	errReset   = windows.WSAECONNRESET
	errAborted = windows.WSAECONNABORTED
)
