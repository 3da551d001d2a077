//go:build cgo && linux && (amd64 || arm64)

package main

// #include <stdlib.h>
// #include "nccl.h"
// #include "thread.h"
import "C"

import (
	"errors"
	"unsafe"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/cmd/libnccl/capi"
)

// Functions that make communicators, and that query one.

// configAt reads the environment, and an ncclConfig_t. A wrong one is an error of the thread's group too.
func configAt(t *C.thread_state, at C.uintptr_t) (*capi.Config, error) {
	refresh()
	cfg, err := capi.ReadConfig(uintptr(at))
	lib.Fail(uintptr(t.group), err)
	return cfg, err
}

// idsOf copies n unique IDs of a communicator of some ranks. There may be as many as ranks, and one too many is copied
// of more.
func idsOf(ids *C.ncclUniqueId, n, ranks int) []bootstrap.ID {
	if ids == nil || n < 1 || ranks < 1 {
		return nil
	}
	all := make([]bootstrap.ID, min(n, ranks+1))
	copy(all, unsafe.Slice((*bootstrap.ID)(unsafe.Pointer(ids)), min(n, ranks)))
	return all
}

// ints copies numbers.
func ints(p *C.int, n int) []int {
	if p == nil || n < 1 {
		return nil
	}
	list := make([]int, n)
	for i, v := range unsafe.Slice(p, n) {
		list[i] = int(v)
	}
	return list
}

//export ringo_encrypt
func ringo_encrypt(t *C.thread_state, mode C.int, key *C.char) C.int {
	return do(t, func() error {
		if mode == C.NCCL_ENCRYPTION_MODE_PSK && key == nil {
			return null(key, "psk")
		}
		return lib.SetEncryption(int(mode), C.GoString(key))
	})
}

//export ringo_unique_id
func ringo_unique_id(t *C.thread_state, to *C.ncclUniqueId) C.int {
	return do(t, func() error { refresh(); return giveID(to, lib.UniqueID) })
}

//export ringo_grow_id
func ringo_grow_id(t *C.thread_state, comm C.uintptr_t, to *C.ncclUniqueId) C.int {
	return do(t, func() error {
		return giveID(to, func() (bootstrap.ID, error) { return lib.GrowID(uintptr(comm)) })
	})
}

func giveID(to *C.ncclUniqueId, f func() (bootstrap.ID, error)) error {
	if err := null(to, "uniqueId"); err != nil {
		return err
	}
	id, err := f()
	if err == nil {
		*(*bootstrap.ID)(unsafe.Pointer(to)) = id
	}
	return err
}

//export ringo_init_rank
func ringo_init_rank(t *C.thread_state, to *C.uintptr_t, size, rank, n C.int, ids *C.ncclUniqueId,
	config C.uintptr_t) C.int {
	return giveHandle(t, to, "comm", func() (uintptr, error) {
		cfg, err := configAt(t, config)
		if err != nil {
			return 0, err
		}
		return lib.InitRank(uintptr(t.group), int(size), int(rank), idsOf(ids, int(n), int(size)), cfg)
	})
}

//export ringo_init_all
func ringo_init_all(t *C.thread_state, to *C.uintptr_t, n C.int, devices *C.int) C.int {
	return do(t, func() error {
		if err := null(to, "comms"); err != nil {
			return err
		}
		refresh()
		handles, err := lib.InitAll(int(n), ints(devices, int(n)))
		for i, h := range handles {
			unsafe.Slice(to, n)[i] = C.uintptr_t(h)
		}
		return err
	})
}

//export ringo_finalize
func ringo_finalize(t *C.thread_state, comm C.uintptr_t) C.int {
	return do(t, func() error { return lib.Finalize(uintptr(t.group), uintptr(comm)) })
}

//export ringo_destroy
func ringo_destroy(t *C.thread_state, comm C.uintptr_t) C.int {
	return do(t, func() error {
		return errors.Join(lib.Unended(uintptr(t.group), uintptr(comm)), lib.Destroy(uintptr(comm)))
	})
}

//export ringo_exit
func ringo_exit() { lib.Exit() }

//export ringo_abort
func ringo_abort(t *C.thread_state, comm C.uintptr_t) C.int {
	return do(t, func() error { return lib.Abort(uintptr(comm)) })
}

//export ringo_revoke
func ringo_revoke(t *C.thread_state, comm C.uintptr_t, flags C.int) C.int {
	return do(t, func() error { return lib.Revoke(uintptr(comm), int(flags)) })
}

//export ringo_suspend
func ringo_suspend(t *C.thread_state, comm C.uintptr_t, flags C.int) C.int {
	return do(t, func() error { return lib.Suspend(uintptr(t.group), uintptr(comm), int(flags)) })
}

//export ringo_resume
func ringo_resume(t *C.thread_state, comm C.uintptr_t) C.int {
	return do(t, func() error { return lib.Resume(uintptr(t.group), uintptr(comm)) })
}

//export ringo_mem_stats
func ringo_mem_stats(t *C.thread_state, comm C.uintptr_t, stat C.int, to *C.uint64_t) C.int {
	return give(t, to, "value", func() (uint64, error) { return lib.MemStats(uintptr(comm), int(stat)) },
		func(v uint64) C.uint64_t { return C.uint64_t(v) })
}

//export ringo_split
func ringo_split(t *C.thread_state, comm C.uintptr_t, color, key C.int, to *C.uintptr_t, config C.uintptr_t) C.int {
	return giveHandle(t, to, "newcomm", func() (uintptr, error) {
		cfg, err := configAt(t, config)
		if err != nil {
			return 0, err
		}
		return lib.Split(uintptr(t.group), uintptr(comm), int(color), int(key), cfg)
	})
}

//export ringo_shrink
func ringo_shrink(t *C.thread_state, comm C.uintptr_t, exclude *C.int, n C.int, to *C.uintptr_t, config C.uintptr_t,
	flags C.int) C.int {
	return giveHandle(t, to, "newcomm", func() (uintptr, error) {
		cfg, err := configAt(t, config)
		if err != nil {
			return 0, err
		}
		return lib.Shrink(uintptr(t.group), uintptr(comm), ints(exclude, int(n)), cfg, int(flags))
	})
}

//export ringo_grow
func ringo_grow(t *C.thread_state, comm C.uintptr_t, size C.int, id *C.ncclUniqueId, rank C.int, to *C.uintptr_t,
	config C.uintptr_t) C.int {
	return giveHandle(t, to, "newcomm", func() (uintptr, error) {
		cfg, err := configAt(t, config)
		if err != nil {
			return 0, err
		}
		return lib.Grow(uintptr(t.group), uintptr(comm), int(size), (*bootstrap.ID)(unsafe.Pointer(id)), int(rank), cfg)
	})
}

//export ringo_async_error
func ringo_async_error(t *C.thread_state, comm C.uintptr_t, to *C.int) (result C.int) {
	defer caught(t, &result)
	if err := null(to, "asyncError"); err != nil {
		return answer(t, err)
	}
	state, _, err := lib.AsyncError(uintptr(comm))
	*to = C.int(state)
	return answer(t, err)
}

//export ringo_count
func ringo_count(t *C.thread_state, comm C.uintptr_t, to *C.int) C.int {
	return giveInt(t, to, "count", func() (int, error) { return lib.Count(uintptr(comm)) })
}

//export ringo_device
func ringo_device(t *C.thread_state, comm C.uintptr_t, to *C.int) C.int {
	return giveInt(t, to, "device", func() (int, error) { return lib.Device(uintptr(comm)) })
}

//export ringo_rank
func ringo_rank(t *C.thread_state, comm C.uintptr_t, to *C.int) C.int {
	return giveInt(t, to, "rank", func() (int, error) { return lib.UserRank(uintptr(comm)) })
}
