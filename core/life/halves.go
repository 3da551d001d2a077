package life

import "sync"

// halves answer a Life what only the halves of its communicator know.
type halves struct {
	mu     sync.Mutex
	busy   func() bool    // guarded by mu
	ran    func() bool    // guarded by mu
	awaits []func() []int // guarded by mu
}

// Busy has f say whether an operation is under way although it is nobody's turn, as on a GPU. Only a GPU half calls
// Busy: from then on the Life knows that there is one.
func (h *halves) Busy(f func() bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy = f
}

// Ran has f say whether an operation that does not ask the Life has begun since this rank was stopped: one of a graph
// on a GPU.
func (h *halves) Ran(f func() bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ran = f
}

// Awaits has f say for which peers this rank waits, besides those that the position of a collective tells: peers that
// are to connect, or that the GPU waits for. Each f that was given is asked.
func (h *halves) Awaits(f func() []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.awaits = append(h.awaits, f)
}

// gpu returns the functions of Busy and Ran, which are nil without a GPU half.
func (h *halves) gpu() (busy, ran func() bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.busy, h.ran
}

// onGPU reports whether the communicator has a GPU half.
func (h *halves) onGPU() bool {
	busy, _ := h.gpu()
	return busy != nil
}

// works asks the GPU half whether an operation is under way.
func (h *halves) works() bool {
	busy, _ := h.gpu()
	return busy != nil && busy()
}

// awaited returns the peers for which the halves wait.
func (h *halves) awaited() (peers []int) {
	h.mu.Lock()
	awaits := h.awaits
	h.mu.Unlock()
	for _, f := range awaits {
		peers = append(peers, f()...)
	}
	return peers
}
