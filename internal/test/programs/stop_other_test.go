//go:build !unix

package programs

import "os"

const stops = false // processes cannot be stopped for a time here

func stop(*os.Process) error { return nil }

func resume(*os.Process) {}
