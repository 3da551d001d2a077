package simt

import "github.com/ringo-go/ringo/internal/ptx"

// A Program is a compiled module. It is immutable.
type Program struct {
	Module  *ptx.Module
	kernels map[string]*Kernel
}

// A Kernel is an entry of a Program.
type Kernel struct {
	Name string
	Func *ptx.Func // parameters, limits
	// Shared is the static shared memory of a block and Local the private
	// memory of a thread, in bytes, with those of the functions it calls.
	Shared, Local int
	Registers     int // registers of a thread, after those that are never in use together were merged
}

// Kernel is the entry with a name.
func (p *Program) Kernel(name string) (*Kernel, bool) {
	k, ok := p.kernels[name]
	return k, ok
}

// An Image is a Program with its variables at addresses.
type Image struct {
	Program *Program
}

// Compile makes a module ready to run. Its error names line and text of the
// instruction that the emulator does not know.
func Compile(m *ptx.Module) (*Program, error) { return nil, nil }

// Load places the variables of a program: globals has the address of each
// .global and .const variable of the module by name, which the caller has
// mapped and initialised. It panics when one that a kernel uses is missing.
func (p *Program) Load(globals map[string]uint64) *Image { return nil }
