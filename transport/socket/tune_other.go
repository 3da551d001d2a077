//go:build !linux

package socket

import (
	"net"
	"os"
	"path/filepath"
	"time"
)

func uncongested(*net.TCPConn) {}

func sysYield() { time.Sleep(time.Microsecond) }

func unixPath(name string) string { return filepath.Join(os.TempDir(), name) }
