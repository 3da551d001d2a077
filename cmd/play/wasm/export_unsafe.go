//go:build wasip1

package main

import (
	"unsafe"

	"github.com/ringo-go/ringo/cmd/play"
)

// in and out hold the question and the answer for the page, until the next question.
var in, out []byte

//go:wasmexport question
func question(length int32) unsafe.Pointer {
	in = make([]byte, length+1)
	return unsafe.Pointer(&in[0])
}

//go:wasmexport ask
func ask() int32 {
	out = play.Ask(string(in[:len(in)-1]))
	return int32(len(out))
}

//go:wasmexport answer
func answer() unsafe.Pointer { return unsafe.Pointer(&out[0]) }
