//go:build !linux

package socket

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
)

func uncongested(*net.TCPConn) {}

func sysYield() { runtime.Gosched() }

func unixPath(name string) string { return filepath.Join(os.TempDir(), name) }
