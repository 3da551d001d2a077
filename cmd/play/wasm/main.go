// Command wasm is package play as a WebAssembly module for the page, without a main. The page
// writes its question to the memory that question returns, calls ask, and reads the memory that
// answer returns. The module needs only WASI preview 1, which does not change with the version of
// Go, as wasm_exec.js of GOOS=js does.
package main

func main() {}
