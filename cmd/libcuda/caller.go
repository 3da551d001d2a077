//go:build cgo && linux && (amd64 || arm64)

package main

// #include <stdint.h>
// int ringo_cuda_callers(uintptr_t *to, int room);
// int ringo_cuda_sites(int of, const char **names, uintptr_t *sites, int room);
// const char *ringo_cuda_file(uintptr_t address, uintptr_t *base);
import "C"

import (
	"debug/dwarf"
	"debug/elf"
	"fmt"
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
		return cudaemu.Caller{For: sync.OnceValue(func() string {
			for _, at := range callers {
				// The runtime's headers have functions around its own.
				if line := lineOf(uintptr(at)); !strings.HasPrefix(line, "cuda_runtime") {
					return line
				}
			}
			return ""
		})}
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

// lines are the answers of lineOf, and objects what it has read of files.
var lines, objects sync.Map // of uintptr to string, and of names to *object

// An object is a program or library; its lines are nil if it was compiled without.
type object struct {
	*elf.File
	lines *dwarf.Data
}

// lineOf is where the program makes a call that returns to an address: "ring.cu:45", or the function if the program
// was compiled without lines.
func lineOf(at uintptr) string {
	if text, ok := lines.Load(at); ok {
		return text.(string)
	}
	text := ""
	if name, base := fileOf(at); name != "" {
		o, ok := objects.Load(name)
		if !ok {
			if f, err := elf.Open(name); err == nil {
				d, _ := f.DWARF()
				o, _ = objects.LoadOrStore(name, &object{f, d})
			}
		}
		if f, ok := o.(*object); ok {
			text = f.lineIn(uint64(at-base) - 1)
		}
	}
	lines.Store(at, text)
	return text
}

// lineIn is the line of the code at an offset from the beginning of the file's first segment.
func (f *object) lineIn(offset uint64) string {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			offset += p.Vaddr &^ (p.Align - 1)
			break
		}
	}
	if f.lines != nil {
		if unit, err := f.lines.Reader().SeekPC(offset); err == nil {
			if r, err := f.lines.LineReader(unit); err == nil && r != nil {
				var e dwarf.LineEntry
				if r.SeekPC(offset, &e) == nil && e.File != nil {
					return fmt.Sprintf("%s:%d", filepath.Base(e.File.Name), e.Line)
				}
			}
		}
	}
	symbols, _ := f.Symbols()
	dynamic, _ := f.DynamicSymbols()
	for _, s := range append(symbols, dynamic...) {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && offset >= s.Value && offset < s.Value+s.Size {
			return "function " + s.Name
		}
	}
	return ""
}
