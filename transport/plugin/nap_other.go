//go:build !linux

package plugin

import "time"

func nap(d time.Duration) { time.Sleep(d) }
