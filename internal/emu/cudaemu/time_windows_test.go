package cudaemu_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/windows"
)

// processTime is the processor time that this process has used.
func processTime(t *testing.T) time.Duration {
	var created, exited, kernel, user windows.Filetime
	require.NoError(t, windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user))
	ticks := func(f windows.Filetime) int64 { return int64(f.HighDateTime)<<32 | int64(f.LowDateTime) }
	return time.Duration(100 * (ticks(kernel) + ticks(user)))
}
