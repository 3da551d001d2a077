//go:build !amd64 || purego

package kernels

var best = plainGo

// implementations are those that this processor has, the best first.
func implementations() []implementation { return []implementation{plainGo} }
