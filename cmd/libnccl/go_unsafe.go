//go:build cgo && linux && (amd64 || arm64)

// Command libnccl is libnccl.so.2, a library that programs written against NCCL load in NCCL's
// place. scripts/libnccl builds it.
//
// It only translates, by cgo: nccl.c has the functions of nccl.h, which call the functions
// exported by the Go files here, which call package capi. The trap: Go's runtime is in
// the process from the first call on; see nccl.c.
package main

// #include <stdlib.h>
// #include "nccl.h"
// #include "thread.h"
import "C"

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"unsafe"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/cmd/libnccl/capi"
	_ "github.com/ringo-go/ringo/internal/late"
)

// lib is this process's library.
var lib = capi.New(getenv, func() string { return C.GoString(C.library_file()) },
	func() int { return int(C.runtime_device()) })

func main() {} // a library has none, but c-shared wants one

// refresh gives Go's copy of the environment what the program has changed by setenv. What makes a communicator begins
// with it, for package ringo reads that copy. The trap: no other thread may change the environment meanwhile, as with
// getenv.
func refresh() {
	readFiles()
	refreshing.Lock()
	defer refreshing.Unlock()
	now, before := map[string]string{}, map[string]string{}
	keep := func(to map[string]string, line string) {
		if name, value, ok := strings.Cut(line, "="); ok && name != "" {
			if _, twice := to[name]; !twice {
				to[name] = value
			}
		}
	}
	for at := C.process_environment(); at != nil && *at != nil; at = (**C.char)(unsafe.Add(unsafe.Pointer(at),
		unsafe.Sizeof(*at))) {
		keep(now, C.GoString(*at))
	}
	for _, line := range os.Environ() {
		keep(before, line)
	}
	for name := range before {
		if _, is := now[name]; !is {
			os.Unsetenv(name)
		}
	}
	for name, value := range now {
		if old, is := before[name]; !is || old != value {
			os.Setenv(name, value)
		}
	}
}

var refreshing sync.Mutex

// readFiles completes the environment with NCCL's files of settings.
var readFiles = sync.OnceFunc(func() { capi.ReadFiles(lookup, os.Setenv) })

// getenv gives a setting.
func getenv(name string) string {
	readFiles()
	value, _ := lookup(name)
	return value
}

// lookup reads the process's environment as it is now. Go's own copy dates from the start of the process; os.Setenv
// writes both.
func lookup(name string) (value string, set bool) {
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	v := C.getenv(n)
	return C.GoString(v), v != nil
}

// answer turns an error into a result, and keeps the error's sentence for the calling thread.
func answer(t *C.thread_state, err error) C.int {
	t.failed = 0
	if err == nil {
		return C.int(capi.Success)
	}
	r := capi.ResultOf(err)
	if r != capi.Success && r != capi.InProgress {
		t.failed = how(err)
		say(err.Error())
		lib.Note(err)
	}
	return C.int(r)
}

// how says how a call has failed.
func how(err error) C.int {
	switch {
	case capi.Asked(err):
		return C.WAS_ASKED
	case capi.Spoils(err):
		return C.COMM_FAILED
	}
	return C.HAS_FAILED
}

func init() {
	capi.Failed = func(e *ringo.Error, device int) {
		list := []*C.char{C.CString(e.Comm), C.CString(e.Op), C.CString(e.Error())}
		C.comm_fails(list[0], list[1], list[2], C.int(device))
		for _, text := range list {
			C.free(unsafe.Pointer(text))
		}
	}
}

// say stores a sentence as the calling thread's last error.
func say(text string) {
	to := unsafe.Slice((*byte)(unsafe.Pointer(C.thread_error())), C.ERROR_BYTES)
	to[copy(to[:len(to)-1], text)] = 0
}

// caught makes an error of a panic: a library must not end the program.
func caught(t *C.thread_state, result *C.int) {
	if p := recover(); p != nil {
		say(fmt.Sprintf("libnccl: a fault of the library's own: %v\n%s", p, debug.Stack()))
		t.failed = 1
		*result = C.int(capi.InternalError)
	}
}

// null is an error if a pointer to a result is.
func null[T any](p *T, name string) error {
	if p == nil {
		return fmt.Errorf("%w: %s is null", ringo.ErrInvalid, name)
	}
	return nil
}

// give carries out f and stores its converted result in *to.
func give[T, R any](t *C.thread_state, to *R, name string, f func() (T, error), convert func(T) R) (result C.int) {
	defer caught(t, &result)
	if err := null(to, name); err != nil {
		return answer(t, err)
	}
	v, err := f()
	if result = answer(t, err); result == C.int(capi.Success) || result == C.int(capi.InProgress) {
		*to = convert(v)
	}
	return result
}

// giveInt and giveHandle are give for ints and for handles.
func giveInt(t *C.thread_state, to *C.int, name string, f func() (int, error)) C.int {
	return give(t, to, name, f, func(v int) C.int { return C.int(v) })
}

func giveHandle(t *C.thread_state, to *C.uintptr_t, name string, f func() (uintptr, error)) C.int {
	if to != nil {
		*to = 0
	}
	return give(t, to, name, f, func(v uintptr) C.uintptr_t { return C.uintptr_t(v) })
}

// do carries out f, which has no result but its error.
func do(t *C.thread_state, f func() error) (result C.int) {
	defer caught(t, &result)
	return answer(t, f())
}

//export ringo_version
func ringo_version(t *C.thread_state, to *C.int) C.int { return giveInt(t, to, "version", lib.Version) }

//export ringo_last_error
func ringo_last_error(t *C.thread_state, comm C.uintptr_t) { say(lib.LastError(uintptr(comm))) }

//export ringo_refuse
func ringo_refuse(t *C.thread_state, name *C.char) C.int {
	return answer(t, capi.Unsupported(C.GoString(name)))
}

//export ringo_wrong
func ringo_wrong(t *C.thread_state, what *C.char) C.int {
	return answer(t, fmt.Errorf("%w: %s", ringo.ErrInvalid, C.GoString(what)))
}

// texts are the C strings that were given to programs and are never freed: values of parameters.
var texts = struct {
	sync.Mutex
	m map[string]*C.char
}{m: map[string]*C.char{}}

// staying is a text as a C string that is never freed.
func staying(text string) *C.char {
	texts.Lock()
	defer texts.Unlock()
	if texts.m[text] == nil {
		texts.m[text] = C.CString(text)
	}
	return texts.m[text]
}
