// Package ptx reads PTX text, the assembly of NVIDIA's GPUs, into a tree that the
// emulator executes and the linter checks. The trap: it covers only the PTX that Ringo's
// kernels use; Parse refuses the rest and names the line.
//
// Source: PTX ISA 8.0, sections 4 to 9.
package ptx

import (
	"fmt"
	"strings"
)

// A Module is a PTX text. Scopes are flattened: what inline assembly declares
// in braces under a name that the function or the module already has is
// renamed, so that names are unique in a function. Debug information, but for
// Source, pragmas and comments are left out.
type Module struct {
	Version     Version  // .version 7.0
	Target      string   // .target sm_70
	Options     []string // other words of .target: "debug"
	AddressSize int      // .address_size 64; 32 when not given
	Vars        []Var    // of the module: .global, .const and .shared, in order
	Funcs       []*Func

	files map[int]string // see Source
	marks []mark         // by line
}

// Func is the function with a name, its definition if there is one; else nil.
func (m *Module) Func(name string) (found *Func) {
	for _, f := range m.Funcs {
		if f.Name == name && (found == nil || found.Declare) {
			found = f
		}
	}
	return found
}

// A Version is of the PTX language.
type Version struct{ Major, Minor int }

// A Func is a kernel, or a device function that kernels call.
type Func struct {
	Name    string
	Entry   bool
	Linkage string // "", "visible", "extern" or "weak"
	Declare bool   // without a body: a declaration of a function defined later, or nowhere
	Line    int
	Params  []Var // in order, with the offsets they have in the parameter block
	Results []Var // of a device function, with offsets in their own block
	Regs    []Reg
	Vars    []Var // .shared, .local and .param ones of the body, with offsets in the function's memory of that space
	Body    []Instr
	Labels  map[string]int      // index into Body; len(Body) for one at the end
	Tables  map[string][]string // labels of each .branchtargets

	Prototypes map[string]Prototype // of calls through registers, by their labels

	ParamBytes  int // of the whole parameter block, without padding at its end
	ResultBytes int
	SharedBytes int // of the .shared ones in Vars
	LocalBytes  int // of the .local ones in Vars, for each thread
	CallBytes   int // of the .param ones in Vars, through which it calls, for each thread

	MaxThreads Dim // .maxntid, zero when not given
	ReqThreads Dim // .reqntid
	MinBlocks  int // .minnctapersm
	MaxRegs    int // .maxnreg

	ReqCluster Dim  // .reqnctapercluster, zero when not given
	MaxCluster int  // .maxclusterrank: blocks of a cluster
	Explicit   bool // .explicitcluster: a launch has to say how large clusters are, if ReqCluster does not
}

// A Prototype is the results and the parameters of functions that a register may hold the address of.
type Prototype struct{ Results, Params []Var }

// LaunchBound is the most threads of a block by .maxntid or .reqntid, 0 when not given.
func (f *Func) LaunchBound() int {
	n := 0
	for _, d := range []Dim{f.MaxThreads, f.ReqThreads} {
		if t := d[0] * max(1, d[1]) * max(1, d[2]); t > 0 && (n == 0 || t < n) {
			n = t
		}
	}
	return n
}

// Signature is the name and the parameters as in PTX: "add(.u64 x, .u32 n)".
func (f *Func) Signature() string {
	var list []string
	for _, v := range f.Params {
		s := "." + v.Type.String() + " " + v.Name
		if v.Count != 1 {
			s += fmt.Sprintf("[%d]", v.Count)
		}
		list = append(list, s)
	}
	return f.Name + "(" + strings.Join(list, ", ") + ")"
}

// A Dim is an extent in three dimensions.
type Dim [3]int

// A Reg is a register. Its number is its index in Func.Regs.
type Reg struct {
	Name string // "%r1"
	Type Type
}

// A Var is a variable or a parameter.
type Var struct {
	Name  string
	Space Space
	Type  Type // of an element
	Align int
	Count int // elements; 0 for extern shared memory of unknown size
	// parameters: in the parameter block; variables of a function: in its memory of that space; 0 for those of a module
	Offset  int
	Init    []byte // little endian, zeros at the end left out
	Relocs  []Reloc
	Linkage string // as of a Func
	Extern  bool
}

// Size is in bytes.
func (v *Var) Size() int { return v.Count * v.Type.Size() }

// A Reloc is an address within an initialiser.
type Reloc struct {
	Offset  int // in Init
	Name    string
	Addend  int64
	Generic bool // generic(name): the generic address, not the one in the space
}

// A Type is a fundamental type.
type Type uint8

const (
	NoType Type = iota
	B8
	B16
	B32
	B64
	B128
	U8
	U16
	U32
	U64
	S8
	S16
	S32
	S64
	F16
	F16x2
	BF16
	BF16x2
	F32
	F64
	TF32
	E4M3
	E5M2
	E4M3x2
	E5M2x2
	U16x2
	S16x2
	Pred
)

// A Space is a state space.
type Space uint8

const (
	Generic Space = iota
	RegSpace
	Param
	Global
	Const
	Shared
	Local
)

// An Instr is an instruction, its name split at the dots. Types and the
// modifiers that change what it computes or how it accesses memory are in
// fields; Mods holds them all in the order written.
//
//	@%p1 ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd1+16];
//	Op "ld", Mods [global v4 u32], Types [U32], Space Global, Vec 4,
//	Guard %p1, Operands [vector of 4, address of %rd1 + 16]
type Instr struct {
	Line     int    // of the text, from 1
	Text     string // as written, without the guard
	Op       string // "ld", "setp", "bar"
	Mods     []string
	Types    []Type // in the order written
	Space    Space
	Vec      int // 1, 2 or 4; 1 for any mov
	Guard    int // register of the predicate, -1 for none
	GuardNot bool
	Absent   string    // why the emulator does not carry it out, nor does Parse look at its operands; mostly ""
	Operands []Operand // destinations first, as written; of call always (results), f, (arguments), perhaps a prototype
}

// Has reports whether the instruction has the modifier.
func (in *Instr) Has(mod string) bool {
	for _, m := range in.Mods {
		if m == mod {
			return true
		}
	}
	return false
}

// Name is the operation with all modifiers: "ld.global.v4.u32".
func (in *Instr) Name() string {
	s := in.Op
	for _, m := range in.Mods {
		s += "." + m
	}
	return s
}

// A Kind says what an Operand is.
type Kind uint8

const (
	RegOperand Kind = iota // Reg
	// Imm: the bits of an integer, or of a float64 for 0d and decimal floats, of a float32 for 0f (Float says which)
	ImmOperand
	AddrOperand    // [Reg + Imm], [Name + Imm] or [Imm]
	NameOperand    // a variable's address, a function, a table of labels: Name, + Imm
	LabelOperand   // Target; Name is the label
	VecOperand     // Elems; of call: results or arguments, maybe none
	SpecialOperand // Name: "%tid.x"
	SinkOperand    // _
	PairOperand    // p|q: Elems
)

// An Operand is what an instruction works on.
type Operand struct {
	Kind   Kind
	Reg    int  // -1 for none
	Not    bool // !%p
	Imm    uint64
	Float  Type // F32, F64 or NoType
	Name   string
	Target int // index into Func.Body
	Elems  []Operand
}
