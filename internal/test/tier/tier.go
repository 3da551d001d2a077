// Package tier says how much a test tries. There are three tiers, which differ in the number of cases and never in
// what is asserted:
//
//	go test -short ./...             cases of each kind, and no test that takes longer than 2 s
//	go test ./...                    cases of each kind
//	RINGO_TEST=full go test ./...    all cases, as CI has it: more seeds, sizes and ranks
//
// It also tells tests whether they run under the race detector, where code is 5 to 20 times slower.
package tier

import (
	"os"
	"testing"
	"time"
)

// Full reports whether tests are to try all of their cases.
func Full() bool { return os.Getenv("RINGO_TEST") == "full" }

// Pairs reports whether tests are to try every pair of two things, and not only each of both in some pair. Pairs
// take too long under the race detector.
func Pairs() bool { return Full() && !Race }

// Some is all cases where Full, else every nth, beginning with the first.
func Some[T any](n int, all []T) []T {
	if Full() {
		return all
	}
	var some []T
	for i := 0; i < len(all); i += n {
		some = append(some, all[i])
	}
	return some
}

// Count is a number of seeds, rounds or ranks: all where Full, else few.
func Count(few, all int) int {
	if Full() {
		return all
	}
	return few
}

// Long is called first by a test that takes longer than 2 s. With -short it skips the test.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes longer than 2 s; without -short it runs")
	}
}

// Heavy is called first by a test that is all a heavy tool: the compiler for another machine, a browser, a cluster. It
// skips the test unless Full.
func Heavy(t testing.TB) {
	t.Helper()
	if !Full() {
		t.Skip("runs with RINGO_TEST=full")
	}
}

// Soon bounds work that takes much less than d; under the race detector it is five times d.
func Soon(d time.Duration) time.Duration {
	if Race {
		d *= 5
	}
	return d
}
