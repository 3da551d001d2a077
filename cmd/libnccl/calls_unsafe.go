//go:build cgo && linux && (amd64 || arm64)

package main

// #include <stdlib.h>
// #include "nccl.h"
// #include "thread.h"
// #include "ringo_norm.h"
// enum {
//	RINGO_ALL_REDUCE, RINGO_REDUCE, RINGO_BROADCAST, RINGO_ALL_GATHER, RINGO_REDUCE_SCATTER,
//	RINGO_ALLTOALL, RINGO_GATHER, RINGO_SCATTER, RINGO_SEND, RINGO_RECV
// };
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/cmd/libnccl/capi"
)

// Collectives, messages and groups of them.

// kinds are the collectives by their numbers in nccl.c.
var kinds = [...]ringo.Kind{
	C.RINGO_ALL_REDUCE: ringo.KindAllReduce, C.RINGO_REDUCE: ringo.KindReduce, C.RINGO_BROADCAST: ringo.KindBroadcast,
	C.RINGO_ALL_GATHER: ringo.KindAllGather, C.RINGO_REDUCE_SCATTER: ringo.KindReduceScatter,
	C.RINGO_ALLTOALL: ringo.KindAlltoAll,
	C.RINGO_GATHER:   ringo.KindGather, C.RINGO_SCATTER: ringo.KindScatter, C.RINGO_SEND: ringo.KindSend,
	C.RINGO_RECV: ringo.KindRecv,
}

//export ringo_put
func ringo_put(t *C.thread_state, p *C.put, comm C.uintptr_t) C.int {
	return do(t, func() error {
		return lib.PutSignal(uintptr(t.group), uintptr(comm), &capi.Put{
			Puts: p.puts != 0, Local: uintptr(p.local), Count: uint64(p.count), Type: int(p._type), Peer: int(p.peer),
			Window: uintptr(p.window), Offset: uint64(p.offset),
			Index: int(p.signal), Context: int(p.context), Flags: int(p.flags), Stream: uintptr(p.stream),
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
func ringo_pre_mul_sum(t *C.thread_state, to *C.int, scalar C.uintptr_t, dataType, residence C.int,
	comm C.uintptr_t) C.int {
	return giveInt(t, to, "op", func() (int, error) {
		return lib.PreMulSum(uintptr(comm), uintptr(scalar), int(dataType), int(residence))
	})
}

//export ringo_op_destroy
func ringo_op_destroy(t *C.thread_state, op C.int, comm C.uintptr_t) C.int {
	return do(t, func() error { return lib.RedOpDestroy(uintptr(comm), int(op)) })
}

//export ringo_do
func ringo_do(t *C.thread_state, kind C.int, in, out C.uintptr_t, count C.size_t, dataType, op, peer C.int, comm,
	stream C.uintptr_t) (result C.int) {
	defer caught(t, &result)
	call := capi.Call{
		Kind: kinds[kind], In: uintptr(in), Out: uintptr(out), Count: uint64(count),
		Type: int(dataType), Op: int(op), Peer: int(peer), Stream: uintptr(stream),
	}
	return answer(t, lib.Do(uintptr(t.group), uintptr(comm), &call))
}

//export go_norm
func go_norm(t *C.thread_state, kind C.int, n *C.ringo_norm, comm, stream C.uintptr_t) (result C.int) {
	defer caught(t, &result)
	if err := null(n, "norm"); err != nil {
		return answer(t, err)
	}
	if n.size != C.sizeof_ringo_norm {
		return answer(t, fmt.Errorf("%w: norm.size is %d: want %d, sizeof(ringo_norm) of this library's ringo_norm.h",
			ringo.ErrInvalid, n.size, C.sizeof_ringo_norm))
	}
	call := capi.Call{
		Kind: kinds[kind], In: uintptr(n.in), Out: uintptr(n.sum), Type: int(n._type), Stream: uintptr(stream),
		Norm: &capi.Norm{
			Rows: uint64(n.rows), Row: uint64(n.row), Epsilon: float32(n.epsilon), PlusOne: n.plus_one != 0,
			Small:    int(n.small_type),
			Residual: uintptr(n.residual), Bias: uintptr(n.bias), Weight: uintptr(n.weight), Normed: uintptr(n.normed),
			SmallOut: uintptr(n.small), Scale: uintptr(unsafe.Pointer(n.scale)), Scales: uintptr(unsafe.Pointer(n.scales)),
		},
	}
	return answer(t, lib.Do(uintptr(t.group), uintptr(comm), &call))
}

//export ringo_group_start
func ringo_group_start(t *C.thread_state) (result C.int) {
	defer caught(t, &result)
	t.group = C.uintptr_t(lib.GroupStart())
	return answer(t, nil)
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
