package gpucomm

import (
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
)

// A stream is told from others by its number: its handle may be given again when it is
// destroyed, and PerThread is another stream on each thread.
type stream struct {
	handle gpu.Stream
	id     uint64 // 0 if the driver does not tell
}

// An entry is where one operation is queued: a stream, as the driver has it now. It is made for the operation and
// passed down.
type entry struct {
	stream
	captures bool             // the stream is being captured
	capture  cuda.CaptureInfo // if it is
	observed *operation       // nil if nobody observes

	// Between begin and end of the order:
	inOwn, inChain *recording // of the capture
	chained        bool       // the operation has the chain's turn
	recorded       bool       // the operation's last launch records its end
}
