package cudaemu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/must"
)

// A wait ends where its condition holds, with the flush flag too, and a write of a value that makes it hold ends one
// that goes on.
func TestValueConditions(t *testing.T) {
	const flush, top = cuda.WaitFlags(1 << 30), uint64(1) << 63
	e := start(t, cudaemu.Config{})
	p, s, w := e.alloc(64, true), e.stream(cuda.StreamNonBlocking), e.stream(cuda.StreamNonBlocking)
	wait := func(size int, at uintptr, v uint64, flags cuda.WaitFlags) error {
		if size == 4 {
			return e.StreamWaitValue32(s, at, uint32(v), flags)
		}
		return e.StreamWaitValue64(s, at, v, flags)
	}
	write := func(size int, at uintptr, v uint64, flags uint32) error {
		if size == 4 {
			return e.StreamWriteValue32(w, at, uint32(v), flags)
		}
		return e.StreamWriteValue64(w, at, v, flags)
	}
	for _, c := range []struct {
		size        int
		flags       cuda.WaitFlags
		v, not, yes uint64 // what is waited for, a value that does not end it, and one that does
	}{
		{4, cuda.WaitGEQ, 5, 4, 5}, {4, cuda.WaitGEQ, 5, 1<<31 + 5, 1<<31 + 4}, {4, cuda.WaitEQ, 7, 8, 7},
		{4, cuda.WaitAND, 6, 9, 2}, {4, cuda.WaitNOR, 0xf, 0xfffffff0, 0xffffffe0},
		{8, cuda.WaitGEQ, 5, 4, 6}, {8, cuda.WaitGEQ, 5, top + 5, top + 4}, {8, cuda.WaitEQ, 1 << 40, 0, 1 << 40},
		{8, cuda.WaitAND, 3 << 40, 1, 1 << 41}, {8, cuda.WaitNOR, 0, ^uint64(0), ^uint64(0) - 1<<40},
	} {
		for _, flags := range []cuda.WaitFlags{c.flags, c.flags | flush} {
			e.ok(write(c.size, p, c.not, 0))
			e.ok(e.StreamSynchronize(w))
			e.ok(wait(c.size, p, c.v, flags))
			done := must.Get(e.StreamQuery(s))
			require.False(t, done, "%+v", c)
			e.ok(write(c.size, p, c.yes, 1)) // CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER
			e.ok(e.StreamSynchronize(s))
		}
	}
	require.Zero(t, e.word(p+8), "a write is of its size")
	for _, size := range []int{4, 8} {
		e.is(wait(size, p+2, 1, cuda.WaitGEQ), cuda.ErrInvalidValue)
		e.is(wait(size, p, 1, 4), cuda.ErrInvalidValue)
		e.is(wait(size, p, 1, flush>>1), cuda.ErrInvalidValue)
		e.is(write(size, p+uintptr(size)/2, 1, 0), cuda.ErrInvalidValue)
		e.is(write(size, p, 1, 2), cuda.ErrInvalidValue)
	}
	e.clean()
}
