//go:build !unix

package ringotest

// canStop is false: this system has no signal that stops a process.
const canStop = false

func stop(int) {}
func wake(int) {}
