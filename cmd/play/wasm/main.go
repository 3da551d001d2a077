// Command wasm is package play for a page: a WebAssembly module without a main, for whoever
// changes the page. The page writes its question to the memory that question gives, calls ask,
// and reads the answer. It asks of its host only what WASI preview 1 has, which does not
// change with the version of Go; wasm_exec.js, of GOOS=js, does.
package main

func main() {}
