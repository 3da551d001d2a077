package meter

import (
	"errors"

	"github.com/ringo-go/ringo/internal/cuda"
)

// A Timer times work on a stream of its own with the driver's events. The context in which it was made has to be
// current.
type Timer struct {
	Stream cuda.Stream

	d          cuda.Driver
	start, end cuda.Event
}

// NewTimer makes the stream and the events. After an error it returns the Timer too: Close gives back what was made.
func NewTimer(d cuda.Driver) (*Timer, error) {
	t := &Timer{d: d}
	var errs [3]error
	t.Stream, errs[0] = d.StreamCreate(cuda.StreamNonBlocking, 0)
	t.start, errs[1] = d.EventCreate(cuda.EventDefault)
	t.end, errs[2] = d.EventCreate(cuda.EventDefault)
	return t, errors.Join(errs[:]...)
}

// Close gives back the stream and the events.
func (t *Timer) Close() error {
	var errs []error
	for _, e := range []cuda.Event{t.start, t.end} {
		if e != 0 {
			errs = append(errs, t.d.EventDestroy(e))
		}
	}
	if t.Stream != 0 {
		errs = append(errs, t.d.StreamDestroy(t.Stream))
	}
	return errors.Join(errs...)
}

// Once is the time of one launch in microseconds, of n launches that launch queues on the stream back to back; wait
// waits for the last.
func (t *Timer) Once(n int, launch func(i int) error, wait func() error) (us float64, err error) {
	if err := t.d.EventRecord(t.start, t.Stream); err != nil {
		return 0, err
	}
	for i := range n {
		if err := launch(i); err != nil {
			return 0, err
		}
	}
	if err := errors.Join(t.d.EventRecord(t.end, t.Stream), wait()); err != nil {
		return 0, err
	}
	return t.took(n)
}

// took is the microseconds of one of n launches between the events.
func (t *Timer) took(n int) (us float64, err error) {
	ms, err := t.d.EventElapsedTime(t.start, t.end)
	return float64(ms) * 1e3 / float64(n), err
}
