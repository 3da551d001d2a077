package device

import (
	"errors"

	"github.com/ringo-go/ringo/internal/cuda"
)

// A timer measures work on a stream of its own with events.
type timer struct {
	d          cuda.Driver
	stream     cuda.Stream
	start, end cuda.Event
}

func newTimer(d cuda.Driver) (*timer, error) {
	t := &timer{d: d}
	var errs [3]error
	t.stream, errs[0] = d.StreamCreate(cuda.StreamNonBlocking, 0)
	t.start, errs[1] = d.EventCreate(cuda.EventDefault)
	t.end, errs[2] = d.EventCreate(cuda.EventDefault)
	return t, errors.Join(errs[:]...)
}

func (t *timer) close() error {
	return errors.Join(t.d.EventDestroy(t.start), t.d.EventDestroy(t.end), t.d.StreamDestroy(t.stream))
}

const (
	targetMicroseconds = 20_000 // of one repetition
	maxLaunches        = 2000   // of one repetition
)

// measure queues launch(0), launch(1), … back to back, enough to take some time,
// and each of the first least of them at least once. On the emulator, where
// times mean nothing, it does no more than that.
func (t *timer) measure(repetitions, least int, launch func(i int) error) (Time, error) {
	us, err := t.once(least, launch) // warm-up, and an estimate
	if err != nil {
		return Time{}, err
	}
	n := least
	if t.d.Name() == "emu" {
		repetitions = 1
	} else {
		n = min(maxLaunches, max(n, int(targetMicroseconds/max(us, 0.1))))
	}
	all := make([]float64, max(1, repetitions))
	for i := range all {
		if all[i], err = t.once(n, launch); err != nil {
			return Time{}, err
		}
	}
	return timeOf(all, n), nil
}

// once is the microseconds of one of n launches.
func (t *timer) once(n int, launch func(i int) error) (float64, error) {
	if err := t.d.EventRecord(t.start, t.stream); err != nil {
		return 0, err
	}
	for i := range n {
		if err := launch(i); err != nil {
			return 0, err
		}
	}
	if err := errors.Join(t.d.EventRecord(t.end, t.stream), t.d.StreamSynchronize(t.stream)); err != nil {
		return 0, err
	}
	ms, err := t.d.EventElapsedTime(t.start, t.end)
	return float64(ms) * 1e3 / float64(n), err
}
