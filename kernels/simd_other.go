//go:build !amd64

package kernels

var best = plainGo
