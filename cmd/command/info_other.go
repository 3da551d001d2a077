//go:build !linux

package command

// memoryFacts are known on Linux only.
func memoryFacts() []fact { return nil }
