//go:build !race

package tier

import "time"

// Race reports whether the race detector is on.
const Race = false

// Patience bounds work that takes a second or two, on a machine that may stop for seconds.
const Patience = 10 * time.Second
