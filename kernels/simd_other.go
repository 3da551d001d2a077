//go:build !amd64 || purego

package kernels

// best is the plain loops: assembly is for amd64 alone, and not with the build tag purego.
var best = plainGo

// implementations are those that this processor has, the best first.
func implementations() []implementation { return []implementation{plainGo} }
