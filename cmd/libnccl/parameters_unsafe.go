//go:build cgo && linux && (amd64 || arm64)

package main

// #include <stdlib.h>
// #include "nccl.h"
// #include "thread.h"
import "C"

import (
	"errors"
	"sync"
	"unsafe"

	"github.com/ringo-go/ringo/cmd/libnccl/capi"
)

// NCCL's parameters by their names.

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
