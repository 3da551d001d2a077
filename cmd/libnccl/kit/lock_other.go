//go:build !unix || solaris || aix

package kit

import "os"

// On other systems nothing is built.
func lock(*os.File) (free bool, err error) { return true, nil }
