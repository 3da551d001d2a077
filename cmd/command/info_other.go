//go:build !linux

package command

// memoryFacts is told on Linux alone.
func memoryFacts() []fact { return nil }
