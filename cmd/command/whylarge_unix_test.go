//go:build unix

package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/hangs"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// whyLarge asks about a large job, and returns how long that took.
func whyLarge(t testing.TB, dir string, odd int) time.Duration {
	began := time.Now()
	var out, errs strings.Builder
	require.Equal(t, 3, ringoMain(t.Context(), []string{"why", "-json", dir}, &out, &errs), errs.String())
	took := time.Since(began)
	var all []whyAnswer
	require.NoError(t, json.Unmarshal([]byte(out.String()), &all))
	require.Len(t, all, 1)
	require.Equal(t, []int{odd}, all[0].Culprits, all[0].Sentence)
	require.Equal(t, "absent", all[0].Reason)
	require.LessOrEqual(t, len(all[0].Classes), 20)
	return took
}

// A job of many ranks has one answer, a short one.
func TestWhyLarge(t *testing.T) {
	dir := t.TempDir()
	odd, err := hangs.Large(dir, tier.Count(64, 512), 64)
	require.NoError(t, err)
	whyLarge(t, dir, odd)
}

// processorTime is the time that the process has used, over all processors.
func processorTime(t testing.TB) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkWhy reads dumps of 64 and of 10,240 ranks. Full rings of 10,240 ranks take 3.6 GiB of disk, and minutes to
// write. MiB-peak is the most memory that the process ever had.
func BenchmarkWhy(b *testing.B) {
	for _, c := range []struct{ ranks, entries int }{{64, 2000}, {10240, 200}, {10240, 2000}} {
		b.Run(fmt.Sprintf("%d ranks of %d entries", c.ranks, c.entries), func(b *testing.B) {
			if testing.Short() && c.ranks > 64 {
				b.Skip("takes up to minutes")
			}
			dir := b.TempDir()
			odd, err := hangs.Large(dir, c.ranks, c.entries)
			require.NoError(b, err)
			bytes := int64(0)
			list, err := filepath.Glob(filepath.Join(dir, "*"))
			require.NoError(b, err)
			for _, name := range list {
				info, err := os.Stat(name)
				require.NoError(b, err)
				bytes += info.Size()
			}
			b.SetBytes(bytes)
			b.ResetTimer()
			began := processorTime(b)
			for b.Loop() {
				whyLarge(b, dir, odd)
			}
			b.ReportMetric((processorTime(b)-began).Seconds()/float64(b.N), "cpu-s/op")
			if status, err := os.ReadFile("/proc/self/status"); err == nil {
				for line := range strings.Lines(string(status)) {
					var kib float64
					if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kib); n == 1 {
						b.ReportMetric(kib/1024, "MiB-peak")
					}
				}
			}
		})
	}
}
