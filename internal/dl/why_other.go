//go:build (!linux || !(amd64 || arm64)) && !ringo_nogpu && !ringo_host

package dl

import "runtime"

// why is the reason in the error of Open.
const why = "only Linux on amd64 and arm64 is supported, not " + runtime.GOOS + "/" + runtime.GOARCH
