//go:build wasip1

// Command wasm is package play for a page: a WebAssembly module without a main, for whoever
// changes the page. The page writes its question to the memory that question gives, calls ask,
// and reads the answer. It asks of its host only what WASI preview 1 has, which does not
// change with the version of Go; wasm_exec.js, of GOOS=js, does.
package main

import (
	"unsafe"

	"github.com/ringo-go/ringo/play"
)

func main() {}

// in and out stay where they are until the next question.
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
