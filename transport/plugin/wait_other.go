//go:build !linux

package plugin

import (
	"runtime"
	"time"
)

func sysYield() { runtime.Gosched() }

func nap(d time.Duration) { time.Sleep(d) }
