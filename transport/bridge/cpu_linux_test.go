package bridge_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkTurns sends a slot on each lane in turn, so the others wait. It reports processor
// time too, the time of the kernel that the benchmark plays included.
func BenchmarkTurns(b *testing.B) {
	from, to := sides(b, "unix", 4096)
	used := func() int64 {
		var r syscall.Rusage
		require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &r))
		return r.Utime.Nano() + r.Stime.Nano()
	}
	before := used()
	for n := range uint64(b.N) {
		for l := range lanes {
			from.kernel[l].publish(n, 8, 0)
			to.kernel[l].take(n)
		}
	}
	b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op")
}
