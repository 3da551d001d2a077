//go:build !unix

package history

import "os"

// signalOf is nil: no signal asks for a history here.
func signalOf(string) os.Signal { return nil }
