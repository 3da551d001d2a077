package plugin

import "slices"

// enlist adds a sending end to those that help looks after.
func (t *Transport) enlist(c *sendConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := append(slices.Clone(*t.senders.Load()), c)
	t.senders.Store(&all)
}

func (t *Transport) dismiss(c *sendConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(*t.senders.Load()), func(x *sendConn) bool { return x == c })
	t.senders.Store(&all)
}

// help carries the sends of all connections on that nobody else is at. It reports whether
// one of them went on.
func (t *Transport) help() (moved bool) {
	if t.busy.Load() == 0 {
		return false
	}
	for _, c := range *t.senders.Load() {
		if c.mu.TryLock() {
			moved = c.progress() || moved
			c.mu.Unlock()
		}
	}
	return moved
}

// stir tells the proxy that there is something to do.
func (t *Transport) stir() {
	if t.parked.Load() {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// proxy carries sends on while nobody waits for anything: after the last send of an operation,
// say. It begins late, for mostly somebody does wait.
func (t *Transport) proxy() {
	for !t.isClosed() {
		t.parked.Store(true)
		if t.busy.Load() == 0 {
			select {
			case <-t.wake:
			case <-t.away:
			}
		}
		t.parked.Store(false)
		for pause := minPause; t.busy.Load() > 0 && !t.isClosed(); {
			nap(pause)
			if pause = min(2*pause, maxPause); t.help() {
				pause = minPause
			}
		}
	}
}
