package cudaemu

import "github.com/ringo-go/ringo/internal/cuda"

func init() {
	cuda.Emulator = func(devices int, seed uint64, unchecked bool) (cuda.Driver, error) {
		return New(Config{Devices: devices, Seed: seed, Plain: unchecked})
	}
}
