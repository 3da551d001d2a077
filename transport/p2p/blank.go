package p2p

import (
	"errors"
	"sync"

	"github.com/ringo-go/ringo/internal/cuda"
)

// blankBytes is the length of the zeros that are copied at a time.
const blankBytes = 256 << 10

// A blank clears memory of a context by copies from zeros of the host: a copy engine does
// that beside any kernel, where a kernel that clears might have to wait for one to end. All
// Ranges of a context share it.
type blank struct {
	key    blankKey
	uses   int // guarded by blanks
	zeros  uintptr
	stream cuda.Stream
}

type blankKey struct {
	driver cuda.Driver
	ctx    cuda.Context
}

var blanks struct {
	sync.Mutex
	of map[blankKey]*blank
}

// borrowBlank gives the blank of a context, which is current.
func borrowBlank(d cuda.Driver, ctx cuda.Context) (*blank, error) {
	blanks.Lock()
	defer blanks.Unlock()
	if blanks.of == nil {
		blanks.of = map[blankKey]*blank{}
	}
	key := blankKey{d, ctx}
	b := blanks.of[key]
	if b == nil {
		b = &blank{key: key}
		var err error
		if b.zeros, err = d.MemHostAlloc(blankBytes, cuda.HostAllocPortable); err != nil {
			return nil, err
		}
		clearPinned(b.zeros, blankBytes)
		if b.stream, err = d.StreamCreate(cuda.StreamNonBlocking, 0); err != nil {
			return nil, errors.Join(err, d.MemFreeHost(b.zeros))
		}
		blanks.of[key] = b
	}
	b.uses++
	return b, nil
}

// clear clears memory and waits until it is done, with the context current.
func (b *blank) clear(at uintptr, n int) error {
	d := b.key.driver
	for ; n > 0; n -= blankBytes {
		if err := d.MemcpyAsync(at, b.zeros, min(n, blankBytes), b.stream); err != nil {
			return err
		}
		at += blankBytes
	}
	return d.StreamSynchronize(b.stream)
}

// clearNow clears memory of a context, which is current, and waits until it is done.
func clearNow(d cuda.Driver, ctx cuda.Context, at uintptr, n int) error {
	b, err := borrowBlank(d, ctx)
	if err != nil {
		return err
	}
	return errors.Join(b.clear(at, n), b.giveBack(d))
}

// giveBack ends a use, with the context current.
func (b *blank) giveBack(d cuda.Driver) error {
	blanks.Lock()
	defer blanks.Unlock()
	if b.uses--; b.uses > 0 {
		return nil
	}
	delete(blanks.of, b.key)
	return errors.Join(d.StreamDestroy(b.stream), d.MemFreeHost(b.zeros))
}
