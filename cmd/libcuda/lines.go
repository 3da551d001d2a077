//go:build cgo && linux && (amd64 || arm64)

package main

import (
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// lines are the answers of lineOf, and objects what it has read of files.
var lines, objects sync.Map // of uintptr to string, and of names to *object

// An object is a program or library; its lines are nil if it was compiled without.
type object struct {
	lines     *dwarf.Data
	first     uint64 // address of the first segment
	functions []elf.Symbol
	stubs     map[string]bool // kernels that the program launches by a function of the compiler's
}

// stub is in the names of functions that the compiler makes to launch a kernel, behind the name's length.
var stub = regexp.MustCompile(`(\d+)__device_stub__`)

func newObject(f *elf.File) *object {
	o := &object{stubs: map[string]bool{}}
	o.lines, _ = f.DWARF()
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			o.first = p.Vaddr &^ (p.Align - 1)
			break
		}
	}
	symbols, _ := f.Symbols()
	dynamic, _ := f.DynamicSymbols()
	for _, s := range append(symbols, dynamic...) {
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC {
			continue
		}
		o.functions = append(o.functions, s)
		if m := stub.FindStringSubmatchIndex(s.Name); m != nil {
			n, _ := strconv.Atoi(s.Name[m[2]:m[3]])
			if end := m[3] + n; m[1] < end && end <= len(s.Name) {
				o.stubs[s.Name[m[1]:end]] = true
			}
		}
	}
	return o
}

// launches reports whether a function is the compiler's, or a kernel's, in whose name the compiler launches it.
func (o *object) launches(function string) bool {
	plain, _, _ := strings.Cut(function, "<")
	return stub.MatchString(function) || o.stubs[plain]
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
				o, _ = objects.LoadOrStore(name, newObject(f))
				f.Close()
			}
		}
		if f, ok := o.(*object); ok {
			text = f.lineIn(uint64(at-base) - 1)
		}
	}
	lines.Store(at, text)
	return text
}

// lineIn is the line of the code at an offset from the beginning of the file's first segment, "" within the runtime's
// headers and what the compiler makes for a launch. What is inlined has the line that calls it.
func (f *object) lineIn(offset uint64) string {
	offset += f.first
	function := ""
	for _, s := range f.functions {
		if offset >= s.Value && offset < s.Value+s.Size {
			function = s.Name
		}
	}
	list := f.frames(offset, function)
	for _, at := range list {
		if !f.launches(at.function) && !strings.HasPrefix(at.line, "cuda_runtime") {
			return at.line
		}
	}
	if len(list) == 0 && function != "" && !f.launches(function) {
		return "function " + function
	}
	return ""
}

// A frame is a line in a function.
type frame struct{ function, line string }

// frames are the line of an address, and those that call what is inlined there, the innermost first.
func (f *object) frames(pc uint64, function string) (list []frame) {
	if f.lines == nil {
		return nil
	}
	r := f.lines.Reader()
	unit, err := r.SeekPC(pc)
	if err != nil {
		return nil
	}
	lines, err := f.lines.LineReader(unit)
	var here dwarf.LineEntry
	if err != nil || lines == nil || lines.SeekPC(pc, &here) != nil || here.File == nil {
		return nil
	}
	files := lines.Files()
	line := func(file, n int64) string {
		if file < 0 || int(file) >= len(files) || files[file] == nil {
			return ""
		}
		return fmt.Sprintf("%s:%d", filepath.Base(files[file].Name), n)
	}
	functions, calls := []string{function}, []string{}
	for {
		e, err := r.Next()
		if err != nil || e == nil || e.Tag == dwarf.TagCompileUnit {
			break
		}
		switch inlined := e.Tag == dwarf.TagInlinedSubroutine; {
		case !inlined && e.Tag != dwarf.TagSubprogram:
		case !f.covers(e, pc):
			r.SkipChildren()
		case inlined: // the outer before the inner
			file, _ := e.Val(dwarf.AttrCallFile).(int64)
			n, _ := e.Val(dwarf.AttrCallLine).(int64)
			functions, calls = append(functions, f.nameOf(e)), append(calls, line(file, n))
		}
	}
	calls = append(calls, fmt.Sprintf("%s:%d", filepath.Base(here.File.Name), here.Line))
	for i, name := range slices.Backward(functions) {
		list = append(list, frame{name, calls[i]})
	}
	return list
}

// covers reports whether an entry has the code at an address.
func (f *object) covers(e *dwarf.Entry, pc uint64) bool {
	ranges, _ := f.lines.Ranges(e)
	return slices.ContainsFunc(ranges, func(r [2]uint64) bool { return r[0] <= pc && pc < r[1] })
}

// nameOf is the name of a function that is inlined.
func (f *object) nameOf(e *dwarf.Entry) string {
	at, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
	if !ok {
		return ""
	}
	r := f.lines.Reader()
	r.Seek(at)
	of, err := r.Next()
	if err != nil || of == nil {
		return ""
	}
	name, _ := of.Val(dwarf.AttrName).(string)
	return name
}
