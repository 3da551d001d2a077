package gpu

import (
	"errors"

	"github.com/ringo-go/ringo/internal/cuda"
)

// ErrNoEmulator is the error of Open for Options.Emulate in a program that has no emulator.
var ErrNoEmulator = errors.New("gpu: no emulated GPUs: this program was built without the emulator: " +
	`import _ "github.com/ringo-go/ringo/gpu/emu"`)

// emulate makes the driver of Options.Emulate devices.
func emulate(o Options) (cuda.Driver, error) {
	if cuda.Emulator == nil {
		return nil, ErrNoEmulator
	}
	return cuda.Emulator(o.Emulate, o.Seed, o.Unchecked)
}
