//go:build ringo_host

package gpu

import (
	"errors"

	"github.com/ringo-go/ringo/internal/cuda"
)

// emulate returns an error: a program built with the tag ringo_host has no emulator.
func emulate(Options) (cuda.Driver, error) {
	return nil, errors.New("gpu: no emulated GPUs: this program was built with the tag ringo_host")
}
