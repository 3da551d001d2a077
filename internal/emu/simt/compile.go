package simt

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// A compiler flattens a kernel and the functions it calls. Each function has registers and private memory of its own
// for the whole run, at the same offset in every thread; see stack.go for functions that may be called within
// themselves.
type compiler struct {
	m      *ptx.Module
	code   *code
	frames map[*ptx.Func]*frame
	order  []*frame
	shared map[string]int // offsets of the shared variables of the module
	local  int            // bytes of local variables of a thread, without those of activations
	sharedLayout
	consts   map[constant]int32
	specials map[string]int32

	approximate map[string]bool // instructions and functions whose last bits may differ from a GPU's
	owners      int16
}

// A frame is a function in the making.
type frame struct {
	f       *ptx.Func
	depth   int     // of calls: 0 for the kernel
	regs    int32   // slot of its register 0
	carry   int32   // slot of the carry flag
	ret     int32   // slot of the instruction to return to
	at      []int32 // index in code of each instruction of the body, and of its end
	shared  []int   // offsets of its variables in the block's shared memory
	params  int     // offset in a thread's private memory of the function's parameters,
	results int     // of its results,
	calls   int     // of the .param variables through which it calls,
	locals  int     // of its .local variables, in the activation if it has any

	activates bool  // it may be called within itself, or by address
	sp        int32 // slot of the address of its activation in local memory, or noSlot
	first     int32 // its registers after merge, with carry, ret and sp, and
	slots     int32 // how many they are
	charge    int   // bytes of the stack that an activation takes, an estimate
}

func compileKernel(m *ptx.Module, f *ptx.Func) (k *Kernel, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case refused:
			err = r.error
		default:
			panic(r)
		}
	}()
	c := &compiler{m: m, code: &code{}, frames: map[*ptx.Func]*frame{}, shared: map[string]int{},
		consts: map[constant]int32{}, specials: map[string]int32{}, approximate: map[string]bool{}}
	g := c.reach(f)
	c.layOut(g)
	c.code.zones, c.code.parts = c.zones(), c.parts
	c.code.dynamic = align(c.static, sharedAlign(m.Vars)) + c.zones()
	c.code.clusters = c.namesCluster()
	for _, fr := range c.order {
		c.function(fr)
	}
	c.link()
	c.partings()
	live := c.merge()
	return &Kernel{Name: f.Name, Func: f, Shared: c.static, Local: c.local, Registers: registers(f, live),
		Workspace: c.has("%envreg"), Approximate: slices.Sorted(maps.Keys(c.approximate)), code: c.code}, nil
}

// has reports whether the kernel reads a special register whose name begins so.
func (c *compiler) has(prefix string) bool {
	for name := range c.specials {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// refused is what a compiler panics with where it refuses an instruction; compileKernel recovers it.
type refused struct{ error }

func refuse(in *ptx.Instr, format string, args ...any) {
	panic(refused{fmt.Errorf("line %d: %q: %s", in.Line, in.Text, fmt.Sprintf(format, args...))})
}

func align(n, to int) int { return (n + to - 1) / to * to }

// sharedAlign is the largest alignment that shared variables ask for, and at least 16.
func sharedAlign(vars []ptx.Var) int {
	n := 16
	for _, v := range vars {
		if v.Space == ptx.Shared {
			n = max(n, v.Align)
		}
	}
	return n
}

// layModule lays out the module's shared variables that an instruction names.
// Those without a size are dynamic shared memory and begin where all others end.
func (c *compiler) layModule(ops []ptx.Operand) {
	for _, o := range flatten(ops) {
		if o.Name == "" {
			continue
		}
		for i := range c.m.Vars {
			v := &c.m.Vars[i]
			if _, have := c.shared[v.Name]; v.Name == o.Name && v.Space == ptx.Shared && v.Count > 0 && !have {
				c.shared[v.Name] = c.place(v)
			}
		}
	}
}

// mostLocal is how much local memory a thread has on every device.
const mostLocal = 512 << 10

// layOut lays out a kernel and the functions that it reaches.
func (c *compiler) layOut(g *graph) {
	results := 0
	for i, f := range g.funcs {
		if f.LocalBytes > mostLocal {
			panic(refused{fmt.Errorf("function %s: %d bytes of local memory, a thread has at most %d", f.Name, f.LocalBytes,
				mostLocal)})
		}
		fr := &frame{f: f, depth: g.depth[i], activates: g.activates[i], regs: c.slots(len(f.Regs)), carry: c.slots(1),
			sp: noSlot}
		if fr.activates {
			results = max(results, f.ResultBytes)
			c.code.activates = true
			if f.LocalBytes > 0 {
				fr.sp = c.slots(1)
			}
		}
		fr.ret = c.slots(1)
		fr.shared = c.enterShared(f)
		if !f.Entry {
			fr.params = c.private(f.Params, f.ParamBytes, ptx.Generic)
			fr.results = c.private(f.Results, f.ResultBytes, ptx.Generic)
		}
		fr.calls = c.private(f.Vars, f.CallBytes, ptx.Param)
		if !fr.activates {
			c.local = align(c.local, 8) + f.LocalBytes
			fr.locals = c.private(f.Vars, f.LocalBytes, ptx.Local)
		}
		c.frames[f] = fr
		c.order = append(c.order, fr)
		for k := range f.Body {
			c.layModule(f.Body[k].Operands)
		}
	}
	c.code.out = c.private(nil, results, ptx.Generic)
}

func (c *compiler) callee(in *ptx.Instr) *ptx.Func {
	for _, f := range c.m.Funcs {
		if f.Name == in.Operands[1].Name && !f.Declare {
			return f
		}
	}
	refuse(in, "only functions that are declared in this module can be called")
	return nil
}

// slots reserves registers.
func (c *compiler) slots(n int) int32 {
	s := c.code.slots
	c.code.slots += int32(n)
	return s
}

// private reserves n bytes of private memory for the variables of a space (any, for
// Generic) at their offsets.
func (c *compiler) private(vars []ptx.Var, n int, space ptx.Space) int {
	if n == 0 {
		return 0
	}
	base := align(len(c.code.owner)+16, 16)
	c.code.owner = append(c.code.owner, make([]int16, align(base+n, 16)-len(c.code.owner))...)
	for _, v := range vars {
		if space != ptx.Generic && v.Space != space {
			continue
		}
		c.owners++
		for i := range v.Size() {
			c.code.owner[base+v.Offset+i] = c.owners
		}
	}
	return base
}

// function decodes a body.
func (c *compiler) function(fr *frame) {
	f := fr.f
	for i := range f.Body {
		fr.at = append(fr.at, int32(len(c.code.ins)))
		c.decode(fr, &f.Body[i])
	}
	fr.at = append(fr.at, int32(len(c.code.ins)))
	end := inst{guard: noSlot, helper: true, ends: true, exec: execExit}
	if !f.Entry {
		end = fr.returns(end)
	}
	c.code.ins = append(c.code.ins, end)
	for i := fr.at[0]; i < int32(len(c.code.ins)); i++ {
		in := &c.code.ins[i]
		switch t := in.x.(type) {
		case label:
			in.target = fr.at[t]
		case []label:
			targets := make([]int32, len(t))
			for k := range t {
				targets[k] = fr.at[t[k]]
			}
			in.x = targets
		}
	}
	body := c.code.ins[fr.at[0]:]
	for i, r := range rank(body, fr.at[0]) {
		body[i].rank = r - int32(fr.depth)<<20 // functions before what calls them
	}
}

// A label is an index into the body of a function, until link.
type label int

// link resolves calls, now that all functions have an address.
func (c *compiler) link() {
	for i := range c.code.ins {
		if call, ok := c.code.ins[i].x.(*callOp); ok {
			c.code.ins[i].target = call.callee.at[0]
		}
	}
}

// emit adds an instruction.
func (c *compiler) emit(fr *frame, in *ptx.Instr, d inst) {
	d.ptx = in
	d.guard, d.negate = noSlot, in.GuardNot
	if in.Guard >= 0 {
		d.guard = fr.regs + int32(in.Guard)
	}
	c.code.ins = append(c.code.ins, d)
}

// decode compiles an instruction.
func (c *compiler) decode(fr *frame, in *ptx.Instr) {
	if in.Absent != "" {
		refuse(in, "%s", in.Absent)
	}
	if d, ok := decoders[in.Op]; ok {
		d(c, fr, in)
		return
	}
	op, err := alu.Lookup(in)
	if err != nil {
		refuse(in, "%v", err)
	}
	d, ops := inst{alu: op.Run}, flatten(in.Operands)
	n := op.Dsts - b2i(op.CarryOut)
	c.dests(fr, in, &d, ops[:n]...)
	c.sources(fr, in, &d, ops[n:]...)
	if op.Approximate {
		c.approximate[in.Name()] = true
	}
	if op.CarryOut {
		d.dst = append(d.dst, fr.carry)
	}
	if op.CarryIn {
		d.src = append(d.src, fr.carry)
	}
	if to := c.width(fr, in.Operands[0]); op.Signed != 0 && to > op.Signed {
		d.alu = func(mask uint32, dst, src []*alu.Lanes) {
			op.Run(mask, dst, src)
			alu.Extend(mask, dst[0], op.Signed, to)
		}
	}
	c.emit(fr, in, d)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
