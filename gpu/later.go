package gpu

import "sync"

// A later counts a device's background work, for which Machine.Close waits.
type later struct {
	mu    sync.Mutex
	ended bool
	under sync.WaitGroup
}

// Later calls f in the background, and the machine's Close waits until f returns. Once Close has begun, Later
// does nothing: whatever f would give back ends with the machine.
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
