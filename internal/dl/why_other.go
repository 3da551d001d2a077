//go:build (!linux || !(amd64 || arm64)) && !ringo_nogpu && !ringo_host

package dl

import "runtime"

const why = "only Linux on amd64 and arm64 is supported, not " + runtime.GOOS + "/" + runtime.GOARCH
