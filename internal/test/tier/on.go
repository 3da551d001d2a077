//go:build race

package tier

import "time"

// Race reports whether the race detector is on.
const Race = true

// Patience bounds work that takes a second or two, on a machine that may stop for seconds and with the race detector.
const Patience = 30 * time.Second
