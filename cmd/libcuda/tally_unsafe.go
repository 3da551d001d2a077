//go:build cgo && linux && (amd64 || arm64)

package main

import (
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// A tally is numbers in a mapped file, which stay when the process is killed.
type tally struct {
	name    string
	numbers *[tallyNumbers]uint64
	kernels map[string]int
}

// Numbers of a tally; those from kernels on are how often each kernel has begun, the last one that of all that have no
// room.
const (
	instructions = iota
	begunCalls   // of the driver
	endedCalls
	firstKernel
	tallyNumbers = 1 << 13
)

// newTally makes a tally of this process, openTally one that all processes share.
func newTally(dir string) (*tally, error) { return mapTally(os.CreateTemp(dir, "counts")) }

func openTally(name string) (*tally, error) {
	return mapTally(os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644))
}

func mapTally(f *os.File, err error) (*tally, error) {
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const size = tallyNumbers * 8
	if err := f.Truncate(size); err != nil {
		return nil, err
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &tally{f.Name(), (*[tallyNumbers]uint64)(unsafe.Pointer(&b[0])), map[string]int{}}, nil
}

// kernel is the number of a kernel, and whether it is new. One call at a time.
func (t *tally) kernel(name string) (at int, isNew bool) {
	at, known := t.kernels[name]
	if !known {
		at = min(firstKernel+len(t.kernels), tallyNumbers-1)
		t.kernels[name] = at
	}
	return at, !known
}

func (t *tally) add(at int, n uint64) { atomic.AddUint64(&t.numbers[at], n) }
func (t *tally) get(at int) uint64    { return atomic.LoadUint64(&t.numbers[at]) }
func (t *tally) set(at int, n uint64) { atomic.StoreUint64(&t.numbers[at], n) }
