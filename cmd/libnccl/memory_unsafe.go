//go:build cgo && linux && (amd64 || arm64)

package main

// #include <stdlib.h>
// #include "nccl.h"
// #include "thread.h"
// #include "devcomm.h"
// static void complete_at(uintptr_t out, unsigned version, uintptr_t window, uintptr_t table, const void *record) {
//   complete((void *)out, version, window, table, record); // out is C's
// }
import "C"

import (
	"unsafe"

	"github.com/ringo-go/ringo/cmd/libnccl/capi"
)

// Memory, windows, and addresses of what peers registered.

//export ringo_alloc
func ringo_alloc(t *C.thread_state, to *C.uintptr_t, n C.size_t) C.int {
	return giveHandle(t, to, "ptr", func() (uintptr, error) { return lib.MemAlloc(uint64(n)) })
}

//export ringo_free
func ringo_free(t *C.thread_state, p C.uintptr_t) C.int {
	return do(t, func() error { return lib.MemFree(uintptr(p)) })
}

//export ringo_register
func ringo_register(t *C.thread_state, comm, p C.uintptr_t, to *C.uintptr_t) C.int {
	return giveHandle(t, to, "handle",
		func() (uintptr, error) { return lib.Register(uintptr(comm), uintptr(p)) })
}

//export ringo_window_register
func ringo_window_register(t *C.thread_state, comm, p C.uintptr_t, n C.size_t, to *C.uintptr_t, flags C.int) C.int {
	return giveHandle(t, to, "win", func() (uintptr, error) {
		return lib.WindowRegister(uintptr(t.group), uintptr(comm), uintptr(p), uint64(n))
	})
}

//export ringo_deregister
func ringo_deregister(t *C.thread_state, comm, handle C.uintptr_t) C.int {
	return do(t, func() error { return lib.Deregister(uintptr(comm), uintptr(handle)) })
}

//export ringo_window_at
func ringo_window_at(t *C.thread_state, comm, window C.uintptr_t, to *C.uintptr_t) C.int {
	return giveHandle(t, to, "outUserPtr", func() (uintptr, error) { return lib.WindowAt(uintptr(comm), uintptr(window)) })
}

//export ringo_resource
func ringo_resource(t *C.thread_state, comm C.uintptr_t, n C.size_t, out C.uintptr_t, version C.uint) C.int {
	return do(t, func() error {
		return lib.Resource(uintptr(t.group), uintptr(comm), uint64(n), func(x capi.Resource) {
			C.complete_at(out, version, C.uintptr_t(x.Window), C.uintptr_t(x.Table), unsafe.Pointer(&x.Record))
		})
	})
}

//export ringo_end_resource
func ringo_end_resource(t *C.thread_state, comm, window C.uintptr_t) C.int {
	return do(t, func() error { return lib.EndResource(uintptr(comm), uintptr(window)) })
}

//export ringo_reach
func ringo_reach(t *C.thread_state, comm C.uintptr_t, size, rank, kernels *C.int) C.int {
	return do(t, func() error {
		n, r, able, err := lib.Reach(uintptr(comm))
		*size, *rank, *kernels = C.int(n), C.int(r), 0
		if able {
			*kernels = 1
		}
		return err
	})
}

//export ringo_peer_address
func ringo_peer_address(t *C.thread_state, win C.uintptr_t, offset C.size_t, rank, ofTeam C.int,
	to *C.uintptr_t) C.int {
	return giveHandle(t, to, "outPtr", func() (uintptr, error) {
		if ofTeam != 0 {
			return lib.TeamAddress(uintptr(win), uint64(offset), int(rank))
		}
		return lib.PeerAddress(uintptr(win), uint64(offset), int(rank))
	})
}

//export ringo_multimem
func ringo_multimem(t *C.thread_state, win C.uintptr_t, offset C.size_t, to *C.uintptr_t) C.int {
	return giveHandle(t, to, "outPtr", func() (uintptr, error) { return lib.Multimem(uintptr(win), uint64(offset)) })
}
