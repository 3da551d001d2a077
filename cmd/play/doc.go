// Package play is the engine behind the page of "ringo play", for people who want to see an
// algorithm move. It carries a schedule out on paper and records each step. A Question names the
// schedule, the number of ranks, changes of steps and a model of links; a Play is its answer.
// The page runs this package as WebAssembly (play/wasm), so it imports no package that moves data.
// It is part of the command ringo, and nothing here is promised to other modules.
//
// The trap: ranks wait for each other only where messages make them, so there is no step of
// all ranks. The page's steps are Turns: the turn of a step is one after the latest turn that the
// step waits for. Beside turns each step has its time by the model, which knows lengths and links.
package play
