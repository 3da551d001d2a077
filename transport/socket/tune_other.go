//go:build !linux

package socket

import (
	"net"
	"os"
	"path/filepath"
)

// uncongested leaves the system's congestion control as it is.
func uncongested(*net.TCPConn) {}

// unixPath is a file in the folder for temporary files.
func unixPath(name string) string { return filepath.Join(os.TempDir(), name) }
