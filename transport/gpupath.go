package transport

// A GPUPath is how the GPUs of two ranks are connected.
type GPUPath uint8

const (
	NoPath     GPUPath = iota
	OverP2P            // queues in the receiver's device memory, over NVLink or on the same GPU
	OverPCIe           // the same over PCIe, or over a link that is not known
	OverHost           // queues in the receiver's host memory, which both processes have pinned
	OverBridge         // queues in each rank's own host memory, and a transport between them
)

// GPUPathNames are the names of the paths in errors and plans.
var GPUPathNames = [...]string{"nothing", "p2p", "pcie", "host memory", "bridge"}

// Peer reports whether the GPUs reach each other's memory.
func (p GPUPath) Peer() bool { return p == OverP2P || p == OverPCIe }

func (p GPUPath) String() string { return GPUPathNames[p] }
