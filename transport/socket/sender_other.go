//go:build !linux || ringo_portable

package socket

// flush leaves everything to the background writer. The caller holds mu.
func (l *sender) flush() bool { return len(l.queue) == 0 }

// writer is the background writer. The end of the stream ends its write.
func (l *sender) writer() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) > 0 {
		c := &l.queue[0]
		b, _ := c.rest(c.off)
		l.mu.Unlock()
		n, err := l.stream.write(b)
		l.mu.Lock()
		if err != nil {
			l.fail(err)
		}
		if len(l.queue) > 0 { // not failed meanwhile
			l.done(n)
		}
	}
	l.writing = false
}
