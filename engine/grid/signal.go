package grid

import (
	"errors"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/transport"
)

// Signals say how many signals go to each rank, or are awaited from each.
type Signals [MaxDirect]uint32

// signalArgs is SignalArgs of kernels/cuda/signal.cu.
type signalArgs struct {
	comm
	counts     uint64
	send, wait Signals
}

// openSignals makes the counts, where all ranks reach each other's sign boards.
func (e *Engine) openSignals() (err error) {
	if e.signs == 0 || e.ranks > MaxDirect {
		return nil
	}
	if e.signals, err = e.carve(16 * MaxDirect); err != nil {
		return err
	}
	return e.clear(e.signals, 16*MaxDirect)
}

// PrepareSignals is Prepare for RunSignals. It returns ErrNoWindow where there are no signals.
func (e *Engine) PrepareSignals() error {
	if e.signals == 0 {
		return ErrNoWindow
	}
	_, _, err := e.module(nil, "signal")
	return err
}

// RunSignals queues a kernel that sends signals to ranks, once all that is ahead of it on the stream is done, and then
// waits for signals of ranks. A signal is waited for once. Ranks may signal themselves.
func (e *Engine) RunSignals(stamp transport.Stamp, send, wait *Signals, s cuda.Stream) error {
	if e.signals == 0 {
		return errors.New("grid: no signals: ranks do not reach each other's memory")
	}
	m, _, err := e.module(nil, "signal")
	if err != nil {
		return err
	}
	f := &e.frame
	f.signal = signalArgs{comm: e.pairwise(stamp), counts: uint64(e.signals), send: *send, wait: *wait}
	f.launch = cuda.Launch{Grid: cuda.Dim3{X: 1}, Block: cuda.Dim3{X: 32}, Stream: s}
	return e.queue(m.run, cuda.ArgsOf(&f.signal), 0)
}
