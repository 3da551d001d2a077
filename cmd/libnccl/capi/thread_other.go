//go:build !linux

package capi

// threadID is 0 where threads have no number.
func threadID() int { return 0 }
