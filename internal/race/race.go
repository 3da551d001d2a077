// Package race tells tests whether they run under the race detector, where code is 5 to 20
// times slower. A test may then try fewer cases, at least one of each kind, if it tries all
// of them without the detector; and what has to happen soon may take longer.
package race

import (
	"testing"
	"time"
)

// Soon is a bound on what takes much less than d; under the race detector it is five times d.
func Soon(d time.Duration) time.Duration {
	if Enabled {
		d *= 5
	}
	return d
}

// Some are all cases; under the race detector, and with -short, only every nth, beginning
// with the first.
func Some[T any](n int, all []T) []T {
	if !Enabled && !testing.Short() {
		return all
	}
	var some []T
	for i := 0; i < len(all); i += n {
		some = append(some, all[i])
	}
	return some
}
