//go:build !linux

package plugin

import "time"

// nap sleeps for d.
func nap(d time.Duration) { time.Sleep(d) }
