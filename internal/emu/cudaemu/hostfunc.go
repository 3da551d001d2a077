package cudaemu

import (
	"runtime"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

func (m *Machine) LaunchHostFunc(h cuda.Stream, f func()) (err error) {
	c := m.call("cuLaunchHostFunc", &err)
	defer c.end()
	s := c.onStream(h)
	c.refuse(f == nil, cuda.ErrInvalidValue, "no function")
	c.enqueue(s, hostWork{f})
	return nil
}

// hostWork calls a function on the host.
type hostWork struct{ f func() }

func (w hostWork) step(m *Machine, o *op) bool {
	if !o.begun {
		m.mem.HostSaw(o.after)
		m.exec.onHost(func() {
			w.f()
			m.lock()
			o.flag = true
			m.mu.Unlock()
		})
	}
	if o.flag {
		o.clock = weakmem.Join(o.after, m.mem.Host())
	}
	return o.flag
}

// onHost queues f for the thread for host functions, or, if the machine is lazy, for
// the next caller that waits.
func (e *executor) onHost(f func()) {
	e.hostFuncs = append(e.hostFuncs, f)
	e.hostWork.Signal()
}

// afterwards has f called soon, even if no caller waits.
func (e *executor) afterwards(f func()) {
	if e.m.cfg.Lazy {
		e.goroutines.Go(f)
	} else {
		e.onHost(f)
	}
}

// AwaitHostFuncs waits until the host functions that are due have run, those of destroyed user objects
// among them. A lazy machine calls these elsewhere, and is not waited for.
func (m *Machine) AwaitHostFuncs() {
	m.lock()
	defer m.mu.Unlock()
	for e := &m.exec; !m.cfg.Lazy && !e.stopped && (len(e.hostFuncs) > 0 || e.hostBusy); {
		e.progress.Wait()
	}
}

func (e *executor) runHostFuncs() {
	defer e.goroutines.Done()
	e.m.mu.Lock()
	defer e.m.mu.Unlock()
	for {
		for len(e.hostFuncs) == 0 {
			if e.stopped {
				return
			}
			e.hostWork.Wait()
		}
		e.runHostFunc()
	}
}

// runHostFunc calls the next host function without the lock.
func (e *executor) runHostFunc() {
	f := e.hostFuncs[0]
	e.hostFuncs = e.hostFuncs[1:]
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	e.hostThread, e.hostBusy = threadID(), true
	e.m.mu.Unlock()
	defer func() {
		e.m.mu.Lock()
		e.hostThread, e.hostBusy = -1, false
		e.touch()
		e.kick()
		e.progress.Broadcast()
	}()
	f()
}

// calling reports whether the thread is within a host function.
func (e *executor) calling(thread int) bool { return e.hostThread == thread }
