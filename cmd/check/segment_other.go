//go:build !unix

package check

// limitSegments does nothing: the system has no such setting.
func limitSegments(uintptr, int) {}
