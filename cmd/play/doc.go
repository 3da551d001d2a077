// Package play is what the page of "ringo play" knows: a schedule that is carried out on paper
// and remembered step by step, for people who want to see an algorithm move. A Question says
// which schedule, on how many ranks, changed how, under which model of links; Play answers it.
// The page runs this package as WebAssembly (play/wasm), so it imports the paper wing alone. It
// is part of the command ringo, and nothing here is promised to other modules.
//
// The trap: ranks wait for each other only where messages make them, so there is no step of
// all ranks. The page's steps are Turns: a step of a rank takes its turn one after the latest
// of what it waits for. The model's clock, which knows lengths and links, is beside them.
package play
