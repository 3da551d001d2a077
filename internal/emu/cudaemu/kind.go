package cudaemu

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/internal/emu/simt"
)

// kinds are GPUs by their short names, in the sizes that NVIDIA's data sheets and the CUDA C Programming Guide's table
// of compute capabilities give.
var kinds = map[string]Device{
	"v100": {Name: "Tesla V100-SXM2-32GB", Major: 7, Minor: 0, Memory: gib(32),
		Shape: simt.Shape{SMs: 80, ThreadsPerSM: 2048, BlocksPerSM: 32, SharedPerSM: 96 << 10, SharedPerBlock: 96 << 10}},
	"t4": {Name: "Tesla T4", Major: 7, Minor: 5, Memory: gib(15),
		Shape: simt.Shape{SMs: 40, ThreadsPerSM: 1024, BlocksPerSM: 16, SharedPerSM: 64 << 10, SharedPerBlock: 64 << 10}},
	"a100": {Name: "NVIDIA A100-SXM4-80GB", Major: 8, Minor: 0, Memory: gib(80),
		Shape: simt.Shape{SMs: 108, ThreadsPerSM: 2048, BlocksPerSM: 32, SharedPerSM: 164 << 10, SharedPerBlock: 163 << 10}},
	"l4": {Name: "NVIDIA L4", Major: 8, Minor: 9, Memory: gib(23),
		Shape: simt.Shape{SMs: 58, ThreadsPerSM: 1536, BlocksPerSM: 24, SharedPerSM: 100 << 10, SharedPerBlock: 99 << 10}},
	"h100": {Name: "NVIDIA H100 80GB HBM3", Major: 9, Minor: 0, Memory: gib(80), Shape: simt.Shape{SMs: 132}},
	"h200": {Name: "NVIDIA H200", Major: 9, Minor: 0, Memory: gib(141), Shape: simt.Shape{SMs: 132}},
}

// gib is so many GiB in bytes, or the most that an int has.
func gib(n int64) int { return int(min(n<<30, math.MaxInt)) }

// Kind is the GPU of a short name, "h200". The error lists the names.
func Kind(name string) (Device, error) {
	d, ok := kinds[strings.ToLower(name)]
	if !ok {
		return d, fmt.Errorf("unknown kind of GPU %q; known are %s", name,
			strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
	}
	return d, nil
}
