package p2p

import (
	"errors"

	"github.com/ringo-go/ringo/internal/cuda"
)

// blankBytes is the length of the zeros that are copied at a time.
const blankBytes = 256 << 10

// A blank clears memory of a context by copies of zeros from host memory. A copy engine makes
// these beside any kernel, while a kernel that clears might have to wait for another to end. All
// Ranges of a context share the blank.
type blank struct {
	driver cuda.Driver
	store  *cuda.Store
	zeros  uintptr
	stream cuda.Stream
}

// A blankKey names the blank of a cuda.Store.
type blankKey struct{}

// borrowBlank gives the blank of a context, which is current.
func borrowBlank(d cuda.Driver, ctx cuda.Context) (*blank, error) {
	s := cuda.OpenStore(d, ctx)
	b, err := cuda.Stored(s, blankKey{}, func() (*blank, error) {
		b := &blank{driver: d, store: s}
		var err error
		if b.zeros, err = d.MemHostAlloc(blankBytes, cuda.HostAllocPortable); err != nil {
			return nil, err
		}
		clearPinned(b.zeros, blankBytes)
		if b.stream, err = d.StreamCreate(cuda.StreamNonBlocking, 0); err != nil {
			return nil, errors.Join(err, d.MemFreeHost(b.zeros))
		}
		return b, nil
	}, func(b *blank) error { return errors.Join(d.StreamDestroy(b.stream), d.MemFreeHost(b.zeros)) })
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return b, nil
}

// clear clears memory and waits until it is done, with the context current.
func (b *blank) clear(at uintptr, n int) error {
	for ; n > 0; n -= blankBytes {
		if err := b.driver.MemcpyAsync(at, b.zeros, min(n, blankBytes), b.stream); err != nil {
			return err
		}
		at += blankBytes
	}
	return b.driver.StreamSynchronize(b.stream)
}

// clearNow clears memory of a context, which is current, and waits until it is done.
func clearNow(d cuda.Driver, ctx cuda.Context, at uintptr, n int) error {
	b, err := borrowBlank(d, ctx)
	if err != nil {
		return err
	}
	return errors.Join(b.clear(at, n), b.giveBack())
}

// giveBack ends a use.
func (b *blank) giveBack() error { return b.store.Close() }
