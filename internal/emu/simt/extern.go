package simt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/library"
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// Functions of CUDA's device library that the emulator carries out.
const (
	setConditional = "cudaGraphSetConditional" // (.param .b64 handle, .param .b32 value), of a conditional node of a graph
	printFunction  = "vprintf"                 // (.param .b64 format, .param .b64 values) gives .b32
	assertFunction = "__assertfail"            // (.param .b64 message, .b64 file, .b32 line, .b64 function, .b64 size of a character)
)

// An externOp is a call of a function that has no body in the module.
type externOp struct {
	name    string
	args    []int // where they lie in private memory
	sizes   []int
	results []int
	size    int // of the first result

	function library.Function
}

// extern is the declaration of the function that an instruction calls, nil if it has a body or is called by address.
func (c *compiler) extern(in *ptx.Instr) *ptx.Func {
	if in.Op != "call" || len(in.Operands) != 3 || in.Operands[1].Kind != ptx.NameOperand {
		return nil
	}
	var declared *ptx.Func
	for _, f := range c.m.Funcs {
		if f.Name != in.Operands[1].Name {
			continue
		}
		if !f.Declare {
			return nil
		}
		declared = f
	}
	return declared
}

// decodeExtern decodes a call of a declared function. One that the emulator does not know fails when a thread comes to
// it.
func decodeExtern(c *compiler, fr *frame, in *ptx.Instr, f *ptx.Func) {
	op := &externOp{name: f.Name}
	for i, a := range in.Operands[2].Elems {
		op.args, op.sizes = append(op.args, fr.callVar(in, a)), append(op.sizes, f.Params[i].Size())
	}
	for _, r := range in.Operands[0].Elems {
		op.results = append(op.results, fr.callVar(in, r))
		op.size = f.Results[0].Size()
	}
	d := inst{exec: execUnknown, x: op}
	switch {
	case f.Name == printFunction && len(op.args) == 2 && len(op.results) == 1:
		d.exec = execPrint
	case f.Name == assertFunction && len(op.args) >= 4:
		d.exec = execAssert
	case f.Name == setConditional && len(op.args) == 2:
		d.exec = execSetConditional
	case f.Name == mallocFunction && len(op.args) == 1 && len(op.results) == 1:
		d.exec = execMalloc
	case f.Name == freeFunction && len(op.args) == 1:
		d.exec = execFree
	default:
		var ok bool
		if op.function, ok = library.Find(f.Name); ok {
			d.exec = execLibrary
		}
		if op.function.Rounded {
			c.approximate[op.function.Name] = true
		}
	}
	c.emit(fr, in, d)
}

func execUnknown(w *warp, in *inst, mask uint32) status {
	return w.fail(in, mask, weakmem.BadInstruction, "%s has no body in this module, and the emulator does not know it",
		in.x.(*externOp).name)
}

// passed is an argument of the call in a lane.
func (w *warp) passed(op *externOp, i, lane int) uint64 {
	var addr, v alu.Lanes
	addr[lane] = uint64(op.args[i])
	w.own.load(1<<lane, &addr, op.sizes[i], []*alu.Lanes{&v})
	return v[lane]
}

// mostText bounds a text that a kernel names: one without an end is cut off.
const mostText = 64 << 10

// text is a string in global memory, as the device's memory has it.
func (w *warp) text(addr uint64) string {
	a, ok := w.block.grid.world.cfg.Memory.Find(addr)
	if !ok {
		return fmt.Sprintf("(text at %#x, where no memory is)", addr)
	}
	b := a.Data[addr-a.Addr:]
	b = b[:min(len(b), mostText)]
	if n := bytes.IndexByte(b, 0); n >= 0 {
		b = b[:n]
	}
	return string(b)
}

func execSetConditional(w *warp, in *inst, mask uint32) status {
	g, op := w.block.grid, in.x.(*externOp)
	set := g.world.cfg.SetConditional
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		if set == nil || !set(g.Device, w.passed(op, 0, lane), uint32(w.passed(op, 1, lane))) {
			return w.failAt(in, lane, weakmem.BadInstruction, 0, "no conditional handle of this context")
		}
	}
	return next
}

func execAssert(w *warp, in *inst, mask uint32) status {
	op, lane := in.x.(*externOp), bits.TrailingZeros32(mask)
	return w.fail(in, mask, weakmem.Assertion, "assertion %q failed at %s:%d in %s", w.text(w.passed(op, 0, lane)),
		w.text(w.passed(op, 1, lane)), uint32(w.passed(op, 2, lane)), w.text(w.passed(op, 3, lane)))
}

func execPrint(w *warp, in *inst, mask uint32) status {
	op, print := in.x.(*externOp), w.block.grid.world.cfg.Print
	var result, addr alu.Lanes
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		read := w.values(w.passed(op, 1, lane), lane)
		counted := func(size int) (uint64, bool) {
			result[lane]++
			return read(size)
		}
		text := format(w.text(w.passed(op, 0, lane)), counted, w.text)
		if print != nil {
			print(w.block.grid.Device, text)
		}
		addr[lane] = uint64(op.results[0])
	}
	w.own.store(mask, &addr, 4, []*alu.Lanes{&result})
	return next
}

// values reads what a thread prints from its local memory, a value after the other, each at its alignment.
func (w *warp) values(addr uint64, lane int) func(size int) (uint64, bool) {
	_, data, at := w.own.span(lane, addr&^windowMask)
	return func(size int) (uint64, bool) {
		at = align(at, size)
		if addr&windowMask != localWindow || at+size > len(data) {
			return 0, false
		}
		b := make([]byte, 8)
		copy(b, data[at:][:size])
		at += size
		return binary.LittleEndian.Uint64(b), true
	}
}

// format is C's printf, with values as a variable list has them: 4 bytes for int, 8 for long, pointers and double.
func format(layout string, value func(size int) (uint64, bool), text func(addr uint64) string) string {
	var out strings.Builder
	for len(layout) > 0 {
		i := strings.IndexByte(layout, '%')
		if i < 0 || i+1 == len(layout) {
			break
		}
		out.WriteString(layout[:i])
		spec := layout[i+1:]
		n := strings.IndexAny(spec, "diouxXeEfFgGaAcsp%")
		if n < 0 {
			layout = layout[i:]
			break
		}
		verb := spec[n]
		spec, layout = spec[:n], spec[n+1:]
		if verb == '%' {
			out.WriteByte('%')
			continue
		}
		flags := strings.TrimRight(spec, "hlLqjzt")
		length, size := spec[len(flags):], 4
		if strings.ContainsAny(length, "lqjzt") {
			size = 8
		}
		for strings.Contains(flags, "*") {
			v, _ := value(4)
			flags = strings.Replace(flags, "*", fmt.Sprint(int32(v)), 1)
		}
		out.WriteString(printed(verb, flags, length, size, value, text))
	}
	out.WriteString(layout)
	return out.String()
}

// printed is one value as printf has it.
func printed(verb byte, flags, length string, size int, value func(int) (uint64, bool),
	text func(uint64) string) string {
	if strings.ContainsRune("eEfFgGaAsp", rune(verb)) {
		size = 8
	}
	v, ok := value(size)
	if !ok {
		return "(no value)"
	}
	switch verb {
	case 'd', 'i':
		n := int64(v)
		switch {
		case length == "hh":
			n = int64(int8(v))
		case length == "h":
			n = int64(int16(v))
		case size == 4:
			n = int64(int32(v))
		}
		return fmt.Sprintf("%"+flags+"d", n)
	case 'u', 'o', 'x', 'X':
		switch length {
		case "hh":
			v = uint64(uint8(v))
		case "h":
			v = uint64(uint16(v))
		}
		if verb == 'u' {
			verb = 'd'
		}
		return fmt.Sprintf("%"+flags+string(verb), v)
	case 'c':
		return fmt.Sprintf("%"+flags+"s", string([]byte{byte(v)}))
	case 's':
		return fmt.Sprintf("%"+flags+"s", text(v))
	case 'p':
		return fmt.Sprintf("%"+flags+"s", fmt.Sprintf("%#x", v))
	case 'a', 'A':
		return fmt.Sprintf("%"+flags+string(verb+('x'-'a')), math.Float64frombits(v))
	}
	if !strings.Contains(flags, ".") && (verb == 'g' || verb == 'G') {
		flags += ".6"
	}
	return fmt.Sprintf("%"+flags+string(verb), math.Float64frombits(v))
}
