// Package cudaemu is a CUDA driver in Go: it emulates devices.
package cudaemu
