package gpu

import "sync"

// A later is what is done in the background before a machine is closed.
type later struct {
	mu    sync.Mutex
	ended bool
	under sync.WaitGroup
}

// Later calls f in the background, and the machine's Close waits for it. Once Close has begun f is not
// called any more: all that it could give back goes with the machine.
func (d *Device) Later(f func()) {
	d.later.mu.Lock()
	defer d.later.mu.Unlock()
	if !d.later.ended {
		d.later.under.Go(f)
	}
}

func (l *later) end() {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.under.Wait()
}
