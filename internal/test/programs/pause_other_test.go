//go:build !unix

package programs

import (
	"os"
	"time"
)

// pause does nothing: processes are not stopped here.
func pause(*os.Process, time.Duration) {}
