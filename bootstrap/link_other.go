//go:build !linux

package bootstrap

import (
	"errors"
	"net"
	"time"
)

func setUserTimeout(*net.TCPConn, time.Duration) error { return errors.ErrUnsupported }
