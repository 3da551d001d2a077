//go:build cgo && linux && (amd64 || arm64)

package main

// #include <stdint.h>
// int ringo_cuda_callers(uintptr_t *to, int room);
// int ringo_cuda_sites(int of, const char **names, uintptr_t *sites, int room);
// const char *ringo_cuda_file(uintptr_t address, uintptr_t *base);
import "C"

import (
	"path/filepath"
	"strings"
	"sync"

	"github.com/ringo-go/ringo/internal/emu/cudaemu"
)

// toGiveBack stands for no device: ringo_cuda_sites gives the calls whose communicators and memory are there.
const toGiveBack = -1

// caller is who makes the call of the driver on this thread. What libnccl.so makes is its own.
func caller(device int) cudaemu.Caller {
	var at [4]C.uintptr_t
	callers := at[:C.ringo_cuda_callers(&at[0], C.int(len(at)))]
	file := ""
	if len(callers) > 0 {
		file, _ = fileOf(uintptr(callers[0]))
	}
	if !strings.HasPrefix(filepath.Base(file), "libnccl.so") {
		return cudaemu.Caller{For: sync.OnceValue(func() string { return programLine(callers) })}
	}
	list := sitesOf(device)
	return cudaemu.Caller{Library: true, For: sync.OnceValue(func() string {
		if len(list) == 0 { // nothing counts the calls
			return "NCCL"
		}
		var all []string
		for _, s := range list {
			all = append(all, s.String())
		}
		return strings.Join(all, ", ")
	})}
}

// programLine is the line of the first of some callers that is the program's own: the runtime's headers have functions
// around its own, and a launch is within a function that the compiler makes.
func programLine(callers []C.uintptr_t) string {
	for _, at := range callers {
		if line := lineOf(uintptr(at)); line != "" {
			return line
		}
	}
	return ""
}

// A site is where the program calls a function.
type site struct {
	name string
	at   uintptr // to which it returns
}

func (s site) String() string {
	if line := lineOf(s.at); line != "" {
		return s.name + " at " + line
	}
	return s.name
}

// sitesOf are sites of calls of NCCL, at most 16.
func sitesOf(of int) (list []site) {
	var names [16]*C.char
	var sites [16]C.uintptr_t
	n := C.ringo_cuda_sites(C.int(of), &names[0], &sites[0], C.int(len(names)))
	for i := range int(n) {
		list = append(list, site{C.GoString(names[i]), uintptr(sites[i])})
	}
	return list
}

// fileOf is the program or library that has the code at an address, and the address of its beginning.
func fileOf(at uintptr) (file string, base uintptr) {
	var b C.uintptr_t
	if name := C.ringo_cuda_file(C.uintptr_t(at), &b); name != nil {
		return C.GoString(name), uintptr(b)
	}
	return "", 0
}
