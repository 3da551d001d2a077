//go:build !ringo_host

package gpu

import (
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
)

// emulate makes the driver of Options.Emulate devices.
func emulate(o Options) (cuda.Driver, error) {
	return cudaemu.New(cudaemu.Config{Devices: o.Emulate, Seed: o.Seed, Plain: o.Unchecked})
}
