//go:build !linux

package main

// memoryFacts is told on Linux alone.
func memoryFacts() []fact { return nil }
