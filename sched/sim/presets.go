package sim

import "fmt"

const (
	us = 1e-6
	gb = 1e9
)

// Presets are round figures of common machines, for studying and as a start for
// one's own. Measure before you believe them.
var (
	// SharedMemory: the ranks of one host, queues in memory they share. A core
	// copies about 12 GB/s into a slot and adds 40 GB/s in float32 with AVX2; all
	// cores of a small machine together get some 40 GB/s out of its memory.
	SharedMemory = Model{
		Name:   "shared memory",
		Inside: "CPU shared memory",
		Intra:  Link{Latency: 0.1 * us, Overhead: 0.05 * us, Bandwidth: 12 * gb, Shared: 40 * gb, Busy: true},
		Reduce: 1 / (40 * gb),
		Copy:   1 / (12 * gb),
	}

	// LoopbackTCP: the ranks of one host, TCP through the loopback interface,
	// where each byte is copied into the kernel and out again.
	LoopbackTCP = Model{
		Name:   "loopback TCP",
		Inside: "TCP through the loopback interface",
		Intra:  Link{Latency: 6 * us, Overhead: 1.5 * us, Bandwidth: 4 * gb, Shared: 10 * gb, Busy: true},
		Reduce: 1 / (40 * gb),
		Copy:   1 / (8 * gb),
	}

	// Ethernet25G: hosts of eight ranks with one card of 25 Gb/s, of which TCP
	// leaves 94 %.
	Ethernet25G = ethernet("25G Ethernet", 25)

	// Ethernet100G: the same with 100 Gb/s.
	Ethernet100G = ethernet("100G Ethernet", 100)

	// InfiniBandNDR: hosts of eight ranks, each with its own port of 400 Gb/s
	// (48 GB/s after headers) and memory that the card reads and writes itself.
	InfiniBandNDR = Model{
		Name:      "InfiniBand NDR",
		Inside:    SharedMemory.Inside,
		Between:   "a port of 400 Gb/s for each rank",
		NodeRanks: 8,
		Intra:     SharedMemory.Intra,
		Inter:     Link{Latency: 1.3 * us, Overhead: 0.2 * us, Bandwidth: 48 * gb},
		Reduce:    SharedMemory.Reduce,
		Copy:      SharedMemory.Copy,
	}

	// NVLink: nodes of eight H200 on an NVSwitch: 362 GB/s a GPU one way, a
	// flag crosses in 0.74 µs, and kernels combine while they receive (measured).
	// Between nodes each GPU has a port of InfiniBand NDR.
	NVLink = Model{
		Name:      "NVLink, H200",
		Inside:    "NVLink between H200s",
		Between:   InfiniBandNDR.Between,
		NodeRanks: 8,
		Intra:     Link{Latency: 0.74 * us, Bandwidth: 362 * gb},
		Inter:     InfiniBandNDR.Inter,
		Reduce:    1 / (2040 * gb), // at the rate of a local copy
		Copy:      1 / (2040 * gb),
		SlotBytes: 1 << 20,
	}
)

// Presets by the names of commands.
var Presets = map[string]Model{
	"shm":         SharedMemory,
	"tcp":         LoopbackTCP,
	"ethernet25":  Ethernet25G,
	"ethernet100": Ethernet100G,
	"ndr":         InfiniBandNDR,
	"nvlink":      NVLink,
}

func ethernet(name string, gbits float64) Model {
	rate := 0.94 * gbits / 8 * gb
	return Model{
		Name:      name,
		Inside:    SharedMemory.Inside,
		Between:   fmt.Sprintf("TCP over one card of %g Gb/s", gbits),
		NodeRanks: 8,
		Intra:     SharedMemory.Intra,
		Inter:     Link{Latency: 12 * us, Overhead: 2 * us, Bandwidth: min(rate, 5*gb), Shared: rate, Busy: true},
		Reduce:    SharedMemory.Reduce,
		Copy:      SharedMemory.Copy,
	}
}
