// Package nccl calls NVIDIA's NCCL, for benchmarks and examples that compare themselves with it.
// The library is opened at run time; a build needs nothing of it. The trap: NCCL waits without a
// deadline, so call it in a process that can be killed.
package nccl

import (
	"fmt"
	"runtime"

	"github.com/ringo-go/ringo/internal/dl"
)

// Default is the library's usual file name.
const Default = "libnccl.so.2"

// A Library is NCCL. It is for one goroutine.
type Library struct {
	lib  dl.Library
	syms map[string]uintptr
}

// A Comm is a communicator of NCCL.
type Comm uintptr

// An ID is where the ranks of a communicator meet, 128 bytes.
type ID [16]uintptr

// Open loads the library of a file.
func Open(file string) (*Library, error) {
	lib, err := dl.Open(file)
	if err != nil {
		return nil, fmt.Errorf("peer nccl: %w: name the file with -nccl", err)
	}
	return &Library{lib: lib, syms: map[string]uintptr{}}, nil
}

// Call calls a function by its name. A result other than 0 is an error.
func (l *Library) Call(name string, args ...uintptr) error {
	fn, ok := l.syms[name]
	if !ok {
		var err error
		if fn, err = l.lib.Sym(name); err != nil {
			return fmt.Errorf("peer nccl: %w", err)
		}
		l.syms[name] = fn
	}
	if r := int32(dl.Call(fn, args...)); r != 0 {
		return fmt.Errorf("peer nccl: %s: result %d; NCCL_DEBUG=WARN says more", name, r)
	}
	return nil
}

// Version is 10000 × major + 100 × minor + patch.
func (l *Library) Version() (int, error) {
	v := new(int32)
	err := l.Call("ncclGetVersion", addressOf(v))
	return int(*v), err
}

// UniqueID makes an ID.
func (l *Library) UniqueID() (id ID, err error) {
	at := new(ID)
	err = l.Call("ncclGetUniqueId", addressOf(at))
	return *at, err
}

// InitRank makes a communicator of this process's current device.
func (l *Library) InitRank(size, rank int, id ID) (Comm, error) {
	c := new(Comm)
	// A struct of 128 bytes by value lies on the stack, after six arguments in registers.
	args := append([]uintptr{addressOf(c), uintptr(size), uintptr(rank), 0, 0, 0}, id[:]...)
	err := l.Call("ncclCommInitRank", args...)
	return *c, err
}

// InitAll makes communicators of these devices, at least one, all in this process.
func (l *Library) InitAll(devices ...int) ([]Comm, error) {
	comms, list := make([]Comm, len(devices)), make([]int32, len(devices))
	for i, d := range devices {
		list[i] = int32(d)
	}
	err := l.Call("ncclCommInitAll", addressOf(&comms[0]), uintptr(len(list)), addressOf(&list[0]))
	runtime.KeepAlive(list)
	return comms, err
}

// Register makes n bytes at p known to a communicator. It returns a handle.
func (l *Library) Register(c Comm, p uintptr, n int) (handle uintptr, err error) {
	h := new(uintptr)
	err = l.Call("ncclCommRegister", uintptr(c), p, uintptr(n), addressOf(h))
	return *h, err
}

// Together calls f within a group: NCCL launches the calls of f at the end, at once.
func (l *Library) Together(f func() error) error {
	if err := l.Call("ncclGroupStart"); err != nil {
		return err
	}
	err := f()
	if end := l.Call("ncclGroupEnd"); err == nil { // in any case: the group is the thread's
		err = end
	}
	return err
}
