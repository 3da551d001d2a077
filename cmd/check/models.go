package check

import "strings"

// A model is a kind of GPU with the figures of its maker's data sheet. A copy reaches less: on an H200, 4,202 of
// 4,800 GB/s in its memory (bench/results/h200-probe.json).
type model struct {
	name   string  // beginning of the driver's name for it
	memory float64 // GB/s
	// nvlink is GB/s each way, by all links together: between any two GPUs if switches join them. 0: none, or
	// it depends on bridges.
	nvlink float64
}

// models are from NVIDIA's data sheets of each product; half of "NVLink bandwidth", which counts both ways.
var models = []model{
	{"NVIDIA B200", 8000, 900},           // data sheet of HGX B200: 8 TB/s, NVLink 1.8 TB/s
	{"NVIDIA H200 NVL", 4800, 0},         // 4.8 TB/s, bridges of 2 or 4
	{"NVIDIA H200", 4800, 450},           // 4.8 TB/s, 900 GB/s
	{"NVIDIA H100 80GB HBM3", 3350, 450}, // the SXM5 module: 3.35 TB/s, 900 GB/s
	{"NVIDIA H100 PCIe", 2000, 0},        // 2 TB/s
	{"NVIDIA H100 NVL", 3900, 0},         // 3.9 TB/s
	{"NVIDIA A100-SXM4-80GB", 2039, 300}, // 2,039 GB/s, 600 GB/s
	{"NVIDIA A100-SXM4-40GB", 1555, 300}, // 1,555 GB/s, 600 GB/s
	{"NVIDIA A100 80GB PCIe", 1935, 0},   // 1,935 GB/s
	{"NVIDIA A100-PCIE-40GB", 1555, 0},   // 1,555 GB/s
	{"NVIDIA L40S", 864, 0},              // 864 GB/s
	{"NVIDIA L40", 864, 0},               // 864 GB/s
	{"NVIDIA L4", 300, 0},                // 300 GB/s
}

// knownModel finds a model by the driver's name of it.
func knownModel(name string) (model, bool) {
	for _, m := range models {
		if rest, ok := strings.CutPrefix(name, m.name); ok && (rest == "" || rest[0] == ' ') {
			return m, true
		}
	}
	return model{}, false
}

// pcieLane is GB/s each way of a lane by generation, after the coding of its bits: 8 GT/s × 128/130 from the third on.
var pcieLane = map[int]float64{1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}

// The least good parts of a known figure. They are low, so that anything below is a fault and not only slow.
const (
	enoughMemory = 0.7
	enoughNVLink = 0.6
	enoughPCIe   = 0.4 // a GPU may be at the other socket than the memory
)
