package transport

// A GPUPath is how the GPUs of two ranks are connected.
type GPUPath uint8

const (
	NoPath     GPUPath = iota
	OverP2P            // queues in the receiver's device memory
	OverHost           // queues in the receiver's host memory, which both processes have pinned
	OverBridge         // queues in each rank's own host memory, and a transport between them
)

// GPUPathNames are the names of the paths in errors and plans.
var GPUPathNames = [...]string{"nothing", "p2p", "host memory", "bridge"}

func (p GPUPath) String() string { return GPUPathNames[p] }
