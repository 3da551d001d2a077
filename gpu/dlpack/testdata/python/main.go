// A library for Python that lends it Go's memory, and takes the memory of its arrays.
package main

import "C"

import (
	"fmt"
	"os"

	"github.com/ringo-go/ringo/gpu/dlpack"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

func main() {}

var data = []float32{1, 2, 3, 4, 5, 6}

//export lend
func lend() uintptr {
	at, err := dlpack.LendLegacy(mem.Of(data), dlpack.Of(kernels.Float32), dlpack.Options{Shape: []int{2, 3}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return at
}

//export lent
func lent() C.int { return C.int(dlpack.Lent()) }

//export first
func first() C.float { return C.float(data[0]) }

// twice adds up an array, doubles its elements, and gives it back. An array that is refused is -1, and stays Python's;
// one of other elements is -2.
//
//export twice
func twice(at uintptr) C.double {
	t, err := dlpack.BorrowLegacy(at)
	if err != nil {
		return -1
	}
	defer t.Close()
	v, err := dlpack.Slice[float32](t)
	if err != nil {
		return -2
	}
	sum := float32(0)
	for i := range v {
		sum += v[i]
		v[i] *= 2
	}
	return C.double(sum)
}
