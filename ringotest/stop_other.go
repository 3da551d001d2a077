//go:build !unix

package ringotest

const canStop = false

func stop(int) {}
func wake(int) {}
