//go:build !unix

package setting

import "os"

// Signal is nil: no name is that of a signal here.
func Signal(string) os.Signal { return nil }
