//go:build cgo && linux && (amd64 || arm64)

// Command libnccl is libnccl.so.2, a library that programs written against NCCL load instead
// of it. scripts/libnccl builds it.
//
// It is the only cgo in this module, and does nothing but translate: nccl.c has the functions of
// nccl.h, this file what they call, and package capi what they do. The trap: Go's runtime is in
// the process from the first call on; see nccl.c.
package main

// #include <stdlib.h>
// #include "nccl.h"
// #include "thread.h"
// enum {
//	RINGO_ALL_REDUCE, RINGO_REDUCE, RINGO_BROADCAST, RINGO_ALL_GATHER, RINGO_REDUCE_SCATTER,
//	RINGO_ALLTOALL, RINGO_GATHER, RINGO_SCATTER, RINGO_SEND, RINGO_RECV
// };
import "C"

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"unsafe"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/internal/capi"
)

// lib is this process's library.
var lib = capi.New(getenv, func() string { return C.GoString(C.library_file()) })

// kinds are the collectives by their numbers in nccl.c.
var kinds = [...]ringo.Kind{
	C.RINGO_ALL_REDUCE: ringo.KindAllReduce, C.RINGO_REDUCE: ringo.KindReduce, C.RINGO_BROADCAST: ringo.KindBroadcast,
	C.RINGO_ALL_GATHER: ringo.KindAllGather, C.RINGO_REDUCE_SCATTER: ringo.KindReduceScatter, C.RINGO_ALLTOALL: ringo.KindAlltoAll,
	C.RINGO_GATHER: ringo.KindGather, C.RINGO_SCATTER: ringo.KindScatter, C.RINGO_SEND: ringo.KindSend, C.RINGO_RECV: ringo.KindRecv,
}

func main() {} // a library has none, but c-shared wants one

// getenv asks the process's environment as it is now. Go's copy is of the time when the process began.
func getenv(name string) string {
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	return C.GoString(C.getenv(n))
}

// answer is the result of an error, whose sentence it leaves with the thread.
func answer(t *C.thread_state, err error) C.int {
	t.failed = 0
	if err == nil {
		return C.int(capi.Success)
	}
	r := capi.ResultOf(err)
	if r != capi.Success && r != capi.InProgress {
		t.failed = 1
		say(err.Error())
		lib.Note(err)
		explain(r, err)
	}
	return C.int(r)
}

// explain has ncclGetErrorString say why. The text has to stay, so only so many have one.
func explain(r capi.Result, err error) {
	if err == nil || r == capi.InProgress {
		return
	}
	text := r.Because(err)
	if len(text) >= C.ERROR_BYTES {
		text = text[:C.ERROR_BYTES-1]
	}
	texts.Lock()
	_, known := texts.m[text]
	room := known || texts.whys < mostWhys
	if room && !known {
		texts.whys++
	}
	texts.Unlock()
	if room {
		C.note_why(C.int(r), staying(text))
	} else {
		C.note_why(C.int(r), nil)
	}
}

// mostWhys is how many texts ncclGetErrorString may give in the life of a process, with its own for the rest.
const mostWhys = 256

// say leaves a sentence with the calling thread.
func say(text string) {
	to := unsafe.Slice((*byte)(unsafe.Pointer(C.thread_error())), C.ERROR_BYTES)
	to[copy(to[:len(to)-1], text)] = 0
}

// caught makes an error of a panic: a guest does not end its host.
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

// give carries out f, whose result is for *to.
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

// giveInt and giveHandle are give for the results that there are.
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

// configAt reads an ncclConfig_t. One that is wrong is an error of the thread's group too.
func configAt(t *C.thread_state, at C.uintptr_t) (*capi.Config, error) {
	cfg, err := capi.ReadConfig(uintptr(at))
	lib.Fail(uintptr(t.group), err)
	return cfg, err
}

// idsOf copies unique IDs.
func idsOf(ids *C.ncclUniqueId, n int) []bootstrap.ID {
	if ids == nil || n < 1 {
		return nil
	}
	return append([]bootstrap.ID{}, unsafe.Slice((*bootstrap.ID)(unsafe.Pointer(ids)), n)...)
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

//export ringo_version
func ringo_version(t *C.thread_state, to *C.int) C.int { return giveInt(t, to, "version", lib.Version) }

//export ringo_alloc
func ringo_alloc(t *C.thread_state, to *C.uintptr_t, n C.size_t) C.int {
	return giveHandle(t, to, "ptr", func() (uintptr, error) { return lib.MemAlloc(uint64(n)) })
}

//export ringo_free
func ringo_free(t *C.thread_state, p C.uintptr_t) C.int {
	return do(t, func() error { return lib.MemFree(uintptr(p)) })
}

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

//export ringo_unique_id
func ringo_unique_id(t *C.thread_state, to *C.ncclUniqueId) C.int {
	return do(t, func() error { return giveID(to, lib.UniqueID) })
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
func ringo_init_rank(t *C.thread_state, to *C.uintptr_t, size, rank, n C.int, ids *C.ncclUniqueId, config C.uintptr_t) C.int {
	return giveHandle(t, to, "comm", func() (uintptr, error) {
		cfg, err := configAt(t, config)
		if err != nil {
			return 0, err
		}
		return lib.InitRank(uintptr(t.group), int(size), int(rank), idsOf(ids, int(n)), cfg)
	})
}

//export ringo_init_all
func ringo_init_all(t *C.thread_state, to *C.uintptr_t, n C.int, devices *C.int) C.int {
	return do(t, func() error {
		if err := null(to, "comms"); err != nil {
			return err
		}
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
	return do(t, func() error { return lib.Destroy(uintptr(comm)) })
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
	return give(t, to, "value", func() (uint64, error) { return lib.MemStats(uintptr(comm), int(stat)) }, func(v uint64) C.uint64_t { return C.uint64_t(v) })
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
func ringo_shrink(t *C.thread_state, comm C.uintptr_t, exclude *C.int, n C.int, to *C.uintptr_t, config C.uintptr_t, flags C.int) C.int {
	return giveHandle(t, to, "newcomm", func() (uintptr, error) {
		cfg, err := configAt(t, config)
		if err != nil {
			return 0, err
		}
		return lib.Shrink(uintptr(t.group), uintptr(comm), ints(exclude, int(n)), cfg, int(flags))
	})
}

//export ringo_grow
func ringo_grow(t *C.thread_state, comm C.uintptr_t, size C.int, id *C.ncclUniqueId, rank C.int, to *C.uintptr_t, config C.uintptr_t) C.int {
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
	state, why, err := lib.AsyncError(uintptr(comm))
	*to = C.int(state)
	result = answer(t, err)
	if err == nil {
		explain(state, why)
	}
	return result
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

//export ringo_register
func ringo_register(t *C.thread_state, comm, p C.uintptr_t, n C.size_t, to *C.uintptr_t) C.int {
	return giveHandle(t, to, "handle", func() (uintptr, error) { return lib.Register(uintptr(comm), uintptr(p), uint64(n)) })
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
func ringo_resource(t *C.thread_state, comm C.uintptr_t, n C.size_t, to, table *C.uintptr_t, record unsafe.Pointer) C.int {
	return giveHandle(t, to, "outDevComm", func() (uintptr, error) {
		x, err := lib.Resource(uintptr(t.group), uintptr(comm), uint64(n))
		copy(unsafe.Slice((*byte)(record), len(x.Record)), x.Record[:])
		*table = C.uintptr_t(x.Table)
		return x.Window, err
	})
}

//export ringo_end_resource
func ringo_end_resource(t *C.thread_state, comm, window C.uintptr_t) C.int {
	return do(t, func() error { return lib.EndResource(uintptr(comm), uintptr(window)) })
}

//export ringo_reach
func ringo_reach(t *C.thread_state, comm C.uintptr_t, size, rank *C.int) C.int {
	return do(t, func() error {
		n, r, err := lib.Reach(uintptr(comm))
		*size, *rank = C.int(n), C.int(r)
		return err
	})
}

//export ringo_peer_address
func ringo_peer_address(t *C.thread_state, win C.uintptr_t, offset C.size_t, rank, ofTeam C.int, to *C.uintptr_t) C.int {
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

//export ringo_put
func ringo_put(t *C.thread_state, local C.uintptr_t, count C.size_t, dataType, peer C.int, win C.uintptr_t, offset C.size_t, signal, context C.int, flags C.uint, puts C.int, comm, stream C.uintptr_t) C.int {
	return do(t, func() error {
		return lib.PutSignal(uintptr(t.group), uintptr(comm), &capi.Put{
			Puts: puts != 0, Local: uintptr(local), Count: uint64(count), Type: int(dataType), Peer: int(peer), Window: uintptr(win), Offset: uint64(offset),
			Index: int(signal), Context: int(context), Flags: int(flags), Stream: uintptr(stream),
		})
	})
}

//export ringo_wait
func ringo_wait(t *C.thread_state, n C.int, list *C.ncclWaitSignalDesc_t, comm, stream C.uintptr_t) C.int {
	return do(t, func() error {
		var arrivals []capi.Arrival
		if n > 0 {
			if err := null(list, "signalDescs"); err != nil {
				return err
			}
			arrivals = unsafe.Slice((*capi.Arrival)(unsafe.Pointer(list)), n)
		}
		return lib.WaitSignal(uintptr(t.group), uintptr(comm), arrivals, uintptr(stream))
	})
}

//export ringo_pre_mul_sum
func ringo_pre_mul_sum(t *C.thread_state, to *C.int, scalar C.uintptr_t, dataType, residence C.int, comm C.uintptr_t) C.int {
	return giveInt(t, to, "op", func() (int, error) {
		return lib.PreMulSum(uintptr(comm), uintptr(scalar), int(dataType), int(residence))
	})
}

//export ringo_op_destroy
func ringo_op_destroy(t *C.thread_state, op C.int, comm C.uintptr_t) C.int {
	return do(t, func() error { return lib.RedOpDestroy(uintptr(comm), int(op)) })
}

//export ringo_do
func ringo_do(t *C.thread_state, kind C.int, in, out C.uintptr_t, count C.size_t, dataType, op, peer C.int, comm, stream C.uintptr_t) (result C.int) {
	defer caught(t, &result)
	call := capi.Call{
		Kind: kinds[kind], In: uintptr(in), Out: uintptr(out), Count: uint64(count),
		Type: int(dataType), Op: int(op), Peer: int(peer), Stream: uintptr(stream),
	}
	return answer(t, lib.Do(uintptr(t.group), uintptr(comm), &call))
}

//export ringo_group_start
func ringo_group_start(t *C.thread_state) (result C.int) {
	defer caught(t, &result)
	g, err := lib.GroupStart(uintptr(t.group))
	t.group = C.uintptr_t(g)
	return answer(t, err)
}

//export ringo_group_end
func ringo_group_end(t *C.thread_state) (result C.int) {
	defer caught(t, &result)
	g, err := lib.GroupEnd(uintptr(t.group))
	t.group = C.uintptr_t(g)
	return answer(t, err)
}

//export ringo_group_simulate_end
func ringo_group_simulate_end(t *C.thread_state, info C.uintptr_t) (result C.int) {
	defer caught(t, &result)
	g, err := lib.GroupSimulateEnd(uintptr(t.group), uintptr(info))
	t.group = C.uintptr_t(g)
	return answer(t, err)
}

//export ringo_param_bind
func ringo_param_bind(t *C.thread_state, to *C.uintptr_t, key *C.char) C.int {
	return giveHandle(t, to, "out", func() (uintptr, error) {
		n, err := lib.Parameter(C.GoString(key))
		return uintptr(n + 1), err
	})
}

//export ringo_param_int
func ringo_param_int(t *C.thread_state, h C.uintptr_t, bits, sign C.int, to C.uintptr_t) C.int {
	return do(t, func() error { return lib.PutParameter(int(h)-1, int(bits), sign != 0, uintptr(to)) })
}

// texts are those that were given to programs, which stay: values of parameters, and what
// ncclGetErrorString says.
var texts = struct {
	sync.Mutex
	m    map[string]*C.char
	whys int // of ncclGetErrorString
}{m: map[string]*C.char{}}

// staying is a text as a C string that stays.
func staying(text string) *C.char {
	texts.Lock()
	defer texts.Unlock()
	if texts.m[text] == nil {
		texts.m[text] = C.CString(text)
	}
	return texts.m[text]
}

//export ringo_param_text
func ringo_param_text(t *C.thread_state, h C.uintptr_t, key *C.char, to **C.char, length *C.int) C.int {
	return do(t, func() error {
		if err := null(to, "value"); err != nil {
			return err
		}
		n := int(h) - 1
		if key != nil {
			var err error
			if n, err = lib.Parameter(C.GoString(key)); err != nil {
				return err
			}
		}
		text, err := lib.ParameterText(n)
		if err != nil {
			return err
		}
		*to = staying(text)
		if length != nil {
			*length = C.int(len(text))
		}
		return nil
	})
}

// keys are the names of the parameters as an array of C strings that stays.
var keys = sync.OnceValue(func() **C.char {
	names := capi.Parameters()
	table := (**C.char)(C.calloc(C.size_t(len(names)), C.size_t(unsafe.Sizeof(uintptr(0)))))
	for i, name := range names {
		unsafe.Slice(table, len(names))[i] = staying(name)
	}
	return table
})

//export ringo_param_keys
func ringo_param_keys(t *C.thread_state, to ***C.char, count *C.int) C.int {
	return do(t, func() error {
		if err := errors.Join(null(to, "table"), null(count, "tableLen")); err != nil {
			return err
		}
		*to, *count = keys(), C.int(len(capi.Parameters()))
		return nil
	})
}
