package history

import (
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/ringo-go/ringo/internal/setting"
	"sync"
)

// ErrSignal is wrapped by errors about names that are no signal of this system.
var ErrSignal = errors.New("no such signal here")

// caught is never read. It keeps a signal that somebody has asked for from ending the process later, between two
// communicators or after the last.
var caught = make(chan os.Signal, 1)

// OnSignal has f called, on a goroutine of its own, whenever the process gets the signal of a name
// (USR2), until stop is called; stop waits for f to return. From then on the signal does nothing.
func OnSignal(name string, f func()) (stop func(), err error) {
	s := setting.Signal(name)
	if s == nil {
		return nil, fmt.Errorf("history: %w: %q", ErrSignal, name)
	}
	come, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(caught, s)
	signal.Notify(come, s)
	var listener sync.WaitGroup
	listener.Go(func() {
		for {
			select {
			case <-come:
				f()
			case <-done:
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		signal.Stop(come)
		close(done)
		listener.Wait()
	}), nil
}
