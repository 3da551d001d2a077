package simt

import (
	"fmt"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A Program is a compiled module. It is immutable.
type Program struct {
	Module  *ptx.Module
	kernels map[string]*Kernel
	unable  map[string]error // kernels with instructions that the emulator does not know
}

// A Kernel is an entry of a Program.
type Kernel struct {
	Name string
	Func *ptx.Func // parameters, limits
	// Shared is the static shared memory of a block and Local the local
	// variables of a thread, in bytes, with those of the functions it calls.
	Shared, Local int
	Registers     int  // of a thread, 32 bits each: an estimate
	Workspace     bool // it reads Grid.Workspace
	// Approximate are its instructions and functions whose results may differ from a GPU's in their last bits.
	Approximate []string

	code *code
}

// code is a kernel and all functions it calls.
type code struct {
	ins      []inst
	slots    int32 // of a warp: registers, special registers and scratch
	consts   []constant
	specials []special
	clusters bool // it names the cluster: its blocks have one, of one block maybe
	dynamic  int  // where dynamic shared memory begins, behind zones bytes of red zones
	zones    int
	parts    []weakmem.Part // the static shared variables
	reserves bool           // it asks where the shared memory of the hardware lies
	owner    []int16        // the variable that a byte of private memory belongs to, 0 for none

	activates bool // functions have activations, see stack.go
	out       int  // where those leave their results in private memory
}

// A constant is an operand that does not change: a value, or the address of a
// variable of the module plus one.
type constant struct {
	value uint64
	name  string
}

// An inst is an instruction of a warp, decoded. Operands are slots: an index
// into the registers of the warp, or ^index into the constants.
type inst struct {
	alu      alu.Func // computes; else exec does
	exec     func(w *warp, in *inst, mask uint32) status
	guard    int32 // slot of the predicate, or noSlot
	negate   bool  // run where the predicate is false
	ends     bool  // no thread goes on after it
	helper   bool  // does a part of an instruction: not counted and not traced
	dst, src []int32
	target   int32 // of a branch or call
	meets    int32 // of a branch with an aligned barrier behind it: where its ways meet, else 0
	joins    bool  // such ways meet here
	rank     int32 // of threads that parted the ones at the lowest rank run first
	x        any   // exec's own operand: *access, *atomic, *barrierOp, *syncOp, *callOp, []int32
	ptx      *ptx.Instr
}

// noSlot says that there is no operand.
const noSlot = int32(-1 << 31)

// Compile makes a module ready to run. Its error names line and text of the first
// instruction that the emulator does not know.
func Compile(m *ptx.Module) (*Program, error) {
	p := CompileEach(m)
	for _, f := range m.Funcs {
		if err := p.unable[f.Name]; err != nil {
			return nil, err
		}
	}
	return p, nil
}

// CompileEach makes those kernels of a module ready to run that the emulator knows all instructions of. Unable says why
// another one is not.
func CompileEach(m *ptx.Module) *Program {
	p := &Program{Module: m, kernels: map[string]*Kernel{}, unable: map[string]error{}}
	for _, f := range m.Funcs {
		if !f.Entry || f.Declare {
			continue
		}
		k, err := compileKernel(m, f)
		if err != nil {
			p.unable[f.Name] = fmt.Errorf("kernel %s: %w", f.Name, err)
			continue
		}
		p.kernels[f.Name] = k
	}
	return p
}

// Unable is why the entry with a name does not run, nil if it does or is not there.
func (p *Program) Unable(name string) error { return p.unable[name] }

// Kernel is the entry with a name.
func (p *Program) Kernel(name string) (*Kernel, bool) {
	k, ok := p.kernels[name]
	return k, ok
}

// Functions are the addresses of the functions of the module by name, for what holds them.
func (p *Program) Functions() map[string]uint64 {
	m := map[string]uint64{}
	for i, f := range p.Module.Funcs {
		if m[f.Name] == 0 || !f.Declare {
			m[f.Name] = functionAddress(i)
		}
	}
	return m
}

// An Image is a Program with its variables at addresses.
type Image struct {
	Program *Program
	consts  map[*Kernel][]alu.Lanes
}

// Load lays out the variables of a program: globals has the address of each
// .global and .const variable of the module by name, which the caller has
// mapped and initialised. It panics when one that a kernel uses is missing.
func (p *Program) Load(globals map[string]uint64) *Image {
	im := &Image{Program: p, consts: map[*Kernel][]alu.Lanes{}}
	functions := p.Functions()
	for _, k := range p.kernels {
		pool := make([]alu.Lanes, len(k.code.consts))
		for i, c := range k.code.consts {
			v := c.value
			if c.name != "" {
				base, ok := globals[c.name]
				if !ok {
					base, ok = functions[c.name]
				}
				if !ok {
					panic(fmt.Sprintf("simt: kernel %s uses variable %s, which has no address", k.Name, c.name))
				}
				v += base
			}
			for lane := range pool[i] {
				pool[i][lane] = v
			}
		}
		im.consts[k] = pool
	}
	return im
}
