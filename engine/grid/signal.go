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

// signaling sends signals between ranks that reach each other's sign boards.
type signaling struct {
	*base
	counts uintptr // 0 where there are no signals
	args   signalArgs
}

func (s *signaling) open(*Options) (err error) {
	if s.signs != 0 && s.ranks <= MaxDirect {
		s.counts, err = s.carveClear(16 * MaxDirect)
	}
	return err
}

// PrepareSignals is Prepare for RunSignals. It returns ErrNoWindow where there are no signals.
func (s *signaling) PrepareSignals() error {
	if s.counts == 0 {
		return ErrNoWindow
	}
	return s.prepared(nil, "signal")
}

// RunSignals queues a kernel that sends signals to ranks, once all that is ahead of it on the stream is done, and then
// waits for signals of ranks. A signal is waited for once. Ranks may signal themselves.
func (s *signaling) RunSignals(stamp transport.Stamp, send, wait *Signals, stream cuda.Stream) error {
	if s.counts == 0 {
		return errors.New("grid: no signals: ranks do not reach each other's memory")
	}
	m, _, err := s.module(nil, "signal")
	if err != nil {
		return err
	}
	s.args = signalArgs{comm: s.pairwise(stamp), counts: uint64(s.counts), send: *send, wait: *wait}
	s.shape(1, 32, 0, stream)
	return s.queue(m.run, cuda.ArgsOf(&s.args), 0)
}
