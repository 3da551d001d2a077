package simt_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// A form is an instruction with its modifiers and the types of its operands.
type form struct {
	name     string // "setp.lt.and.s32"
	dst, src []operand
	pair     bool   // destinations as p|q
	imm      string // an immediate at the end, ", 0x96"
}

// An operand of a form.
type operand struct {
	typ    ptx.Type
	values string // a list of values of its own, see cases
	vector bool   // within the only vector of its side
	carry  bool   // the carry flag
}

// families are the forms, a golden file each. A line is a name and its
// operands; {a,b} stands for a and b in turn. T is the last type in the name, D the
// first, W is twice as wide as T; <a b> is a vector, a|b a pair of predicates,
// cc the carry flag, u32:shift a source with values of its own.
var families = map[string][]string{
	"integer": {
		"{add,sub,mul.lo,mul.hi,div,rem,min,max}.{u16,s16,u32,s32,u64,s64} T = T T",
		"{add,sub}.sat.s32 T = T T",
		"add.{u16x2,s16x2} T = T T",
		"{min,max}.{relu.s32,u16x2,s16x2,relu.s16x2} T = T T",
		"mul.wide.{u16,s16,u32,s32} W = T T",
		"{mad.lo,mad.hi,sad}.{u16,s16,u32,s32,u64,s64} T = T T T",
		"mad.hi.sat.s32 T = T T T",
		"mad.wide.{u16,s16,u32,s32} W = T T W",
		"{abs,neg}.{s16,s32,s64} T = T",
		"dp4a.{u32,s32}.{u32,s32} u32 = u32 u32 u32",
		"dp2a.{lo,hi}.{u32,s32}.{u32,s32} u32 = u32 u32 u32",
		"{add,sub}.cc.{u32,s32,u64,s64} T cc = T T",
		"{addc,subc}.{u32,s32,u64,s64} T = T T cc",
		"{addc,subc}.cc.{u32,s32,u64,s64} T cc = T T cc",
		"mad.{lo,hi}.cc.{u32,s32,u64,s64} T cc = T T T",
		"madc.{lo,hi}.{u32,s32,u64,s64} T = T T T cc",
		"madc.{lo,hi}.cc.{u32,s32,u64,s64} T cc = T T T cc",
	},
	"bits": {
		"{and,or,xor}.{pred,b16,b32,b64} T = T T",
		"not.{pred,b16,b32,b64} T = T",
		"cnot.{b16,b32,b64} T = T",
		"lop3.b32 T = T T T {0x96,0xE8,0xCA,0x80,0xFE,0x1B,0x00,0xFF,0x6A,0xC5}",
		"shl.{b16,b32,b64} T = T u32:shift",
		"shr.{b16,b32,b64,u16,u32,u64,s16,s32,s64} T = T u32:shift",
		"shf.{l,r}.{clamp,wrap}.b32 T = T T u32:shift",
		"bfe.{u32,s32,u64,s64} T = T u32:shift u32:shift",
		"bfi.{b32,b64} T = T T u32:shift u32:shift",
		"bfind{,.shiftamt}.{u32,s32,u64,s64} u32 = T",
		"{clz,popc}.{b32,b64} u32 = T",
		"brev.{b32,b64} T = T",
		"szext.{clamp,wrap}.{u32,s32} T = T u32:shift",
		"bmsk.{clamp,wrap}.b32 b32 = b32:shift b32:shift",
		"prmt.b32{,.f4e,.b4e,.rc8,.ecl,.ecr,.rc16} b32 = b32 b32 b32:selector",
		"selp.{b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64} T = T T pred",
		"slct.{b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64}.s32 D = D D s32",
		"slct{,.ftz}.{b32,u64,f32}.f32 D = D D f32",
		"mov.{b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64,pred} T = T",
		"mov.b32 b32 = <b16 b16>",
		"mov.b32 <b16 b16> = b32",
		"mov.b64 b64 = <b32 b32>",
		"mov.b64 <b32 b32> = b64",
		"mov.b64 b64 = <b16 b16 b16 b16>",
		"mov.b64 <b16 b16 b16 b16> = b64",
	},
	"compare": {
		"setp.{eq,ne,lt,le,gt,ge}.{u16,s16,u32,s32,u64,s64} pred = T T",
		"setp.{lo,ls,hi,hs}.{u16,u32,u64} pred = T T",
		"setp.{eq,ne}.{b16,b32,b64} pred = T T",
		"setp.{lt,ne}.{u32,s32,s64,f32,f64} pred|pred = T T",
		"setp.{lt,gtu}.{and,or,xor}.{f32,f64} pred|pred = T T pred",
		"setp.{lt,gtu}.{and,or,xor}.{f16,bf16} pred = T T pred",
		"setp.{lt,eq}.{and,or,xor}.{u16,s32,u64} pred = T T pred",
		"setp.eq.{and,or,xor}.b32 pred = T T pred",
		"setp.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}{,.ftz}.{f32,f16} pred = T T",
		"setp.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}.{f64,bf16} pred = T T",
		"setp.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}{,.ftz}.f16x2 pred|pred = T T",
		"setp.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}.bf16x2 pred|pred = T T",
		"setp.lt.{and,or,xor}.{f16x2,bf16x2} pred|pred = T T pred",
		"set.{eq,lt}.{u32,s32,f32}.{u16,s16,u32,s32,u64,s64} D = T T",
		"set.{eq,ne,ltu,num}.{u32,s32,f32}.{f32,f64} D = T T",
		"set.lt.ftz.{u32,f32}.f32 D = T T",
		"set.{gt,nan}.{and,or,xor}.{u32,s32,f32}.{f32,f64} D = T T pred",
		"set.{eq,ltu}{,.ftz}.{f16,u16,s16,u32,s32}.f16 D = T T",
		"set.{eq,ltu}{,.ftz}.f16x2.f16x2 D = T T",
		"set.{eq,ltu}.{bf16,u16,s16,u32,s32}.bf16 D = T T",
		"set.{eq,ltu}.bf16x2.bf16x2 D = T T",
		"set.lt.{and,xor}.f16x2.f16x2 D = T T pred",
		"testp.{finite,infinite,number,notanumber,normal,subnormal}.{f32,f64} pred = T",
	},
	"convert": {
		"cvt.{u8,s8,u16,s16,u32,s32,u64,s64}.{u8,s8,u16,s16,u32,s32,u64,s64} D = T",
		"cvt.sat.{u8,u16,u32,u64}.{s8,s16,s32,s64} D = T",
		"cvt.sat.{u8,s8}.{u16,u32,u64} D = T",
		"cvt.sat.{u16,s16}.{u32,u64} D = T",
		"cvt.sat.{u32.u64,s32.u64,s64.u64,s32.u32,s16.u16,s8.u8,s8.s16,s8.s32,s8.s64,s16.s32,s16.s64,s32.s64} D = T",
		"cvt.{rn,rz,rm,rp}.{f16,f32,f64}.{u8,s8,u16,s16,u32,s32,u64,s64} D = T",
		"cvt.{rn,rz,rm,rp}.bf16.{u16,s16,u32,s32,u64,s64} D = T",
		"cvt.rn.sat.{f16,f32,f64}.{u32,s32,s64} D = T",
		"cvt.{rni,rzi,rmi,rpi}.{u8,s8,u16,s16,u32,s32,u64,s64}.{f16,f32,f64} D = T",
		"cvt.{rni,rzi,rmi,rpi}.{u16,s16,u32,s32,u64,s64}.bf16 D = T",
		"cvt.{rni,rzi}.ftz.{u8,u32,s32,u64,s64}.f32 D = T",
		"cvt.{rzi,rpi}.sat.{u8,s8,u16,u32,s32,s64}.{f16,f32,f64} D = T",
		"cvt.{rni,rzi,rmi,rpi}.{f16,bf16,f32,f64}.T D = T",
		"cvt.{rni,rzi,rmi,rpi}.{ftz,sat,ftz.sat}.f32.f32 D = T",
		"cvt.{rni,rzi}.sat.{f16,f64}.T D = T",
		"cvt{,.ftz,.sat,.ftz.sat}.f32.f32 D = T",
		"cvt{,.sat}.{f16,f64}.T D = T",
		"cvt.bf16.bf16 D = T",
		"cvt.{rn,rz,rm,rp}{,.sat}.f32.f64 D = T",
		"cvt.{rn,rz,rm,rp}.ftz{,.sat}.f32.f64 D = T",
		"cvt.{rn,rz,rm,rp}{,.sat}.f16.{f32,f64} D = T",
		"cvt.{rn,rz}.ftz{,.sat}.f16.f32 D = T",
		"cvt.{rn,rz,rm,rp}.bf16.{f32,f64,f16} D = T",
		"cvt.{rn,rz,rm,rp}.f16.bf16 D = T",
		"cvt{,.sat}.{f32,f64}.f16 D = T",
		"cvt.{f32,f64}.bf16 D = T",
		"cvt{,.sat}.f64.f32 D = T",
		"cvt.ftz{,.sat}.{f64.f32,f32.f16} D = T",
		"cvt.{rn,rz}{.relu,.satfinite,.relu.satfinite}.{f16,bf16}.f32 D = T",
		"cvt.{rn,rz}{,.relu,.satfinite}.{f16x2,bf16x2}.f32 D = T T",
		"cvt.{rna,rn,rz,rn.relu,rz.relu,rna.satfinite}.tf32.f32 b32 = T",
		"cvt.rn.satfinite{,.relu}.{e4m3x2,e5m2x2}.f32 D = T T",
		"cvt.rn.satfinite{,.relu}.{e4m3x2,e5m2x2}.f16x2 D = T",
		"cvt.rn{,.relu}.f16x2.{e4m3x2,e5m2x2} D = T",
		"cvt.{s8,u8,s16,u16}.{s32,u64} b32 = T", // in wider registers than they need
		"cvt.{s8,u8,s32}.s64 b64 = T",
		"cvt.rzi.{s8,u8,s16,u16}.f32 b32 = T",
		"cvt.{u32,s64}.{s8,u8,s16,u16} D = b32",
		"cvt.rn.f32.{s8,u8,s16,u16} D = b32",
	},
	"float": {
		"{add,sub,mul}{,.rn,.rz,.rm,.rp}{,.ftz}{,.sat}.f32 T = T T",
		"{add,sub,mul}{,.rn,.rz,.rm,.rp}.f64 T = T T",
		"fma.{rn,rz,rm,rp}{,.ftz}{,.sat}.f32 T = T T T",
		"{fma,mad}.{rn,rz,rm,rp}.f64 T = T T T",
		"mad.{rn,rp}{,.ftz}.f32 T = T T T",
		"div.{rn,rz,rm,rp}{,.ftz}.f32 T = T T",
		"div.{rn,rz,rm,rp}.f64 T = T T",
		"{rcp,sqrt}.{rn,rz,rm,rp}{,.ftz}.f32 T = T",
		"{rcp,sqrt}.{rn,rz,rm,rp}.f64 T = T",
		"{abs,neg}{,.ftz}.f32 T = T",
		"{abs,neg}.f64 T = T",
		"{min,max}{,.ftz}{,.NaN}{,.xorsign.abs}.f32 T = T T",
		"{min,max}.f64 T = T T",
		"copysign.{f32,f64} T = T T",
	},
	"atomic": { // sources are the memory and the operands, results the old value (of atom) and the memory
		"atom.{global,shared}.add.{u32,s32,u64,f32,f64,noftz.f16,noftz.f16x2,noftz.bf16,noftz.bf16x2} T T = T T",
		"atom.{global,shared}.{min,max}.{u32,s32,u64,s64} T T = T T",
		"atom.{global,shared}.{and,or,xor,exch}.{b32,b64} T T = T T",
		"atom.{global,shared}.cas.{b16,b32,b64} T T = T T T",
		"atom.{global,shared}.{inc,dec}.u32 T T = T T",
		"red.{global,shared}.add.{u32,s32,u64,f32,f64,noftz.f16,noftz.f16x2,noftz.bf16,noftz.bf16x2} T = T T",
	},
	"half": {
		"{add,sub,mul}{,.rn}{,.ftz}{,.sat}.{f16,f16x2} T = T T",
		"{add,sub,mul}{,.rn}.{bf16,bf16x2} T = T T",
		"fma.rn{,.ftz}{,.sat,.relu}.{f16,f16x2} T = T T T",
		"fma.rn{,.relu}.{bf16,bf16x2} T = T T T",
		"{abs,neg}{,.ftz}.{f16,f16x2} T = T",
		"{abs,neg}.{bf16,bf16x2} T = T",
		"{min,max}{,.ftz}{,.NaN}{,.xorsign.abs}.{f16,f16x2} T = T T",
		"{min,max}{,.NaN}{,.xorsign.abs}.{bf16,bf16x2} T = T T",
	},
}

// forms are those of a family.
func forms(family string) []form {
	var all []form
	for _, pattern := range families[family] {
		for _, line := range expand(pattern) {
			all = append(all, parseForm(line))
		}
	}
	return all
}

// expand replaces the {a,b} of a pattern by each choice in turn.
func expand(pattern string) []string {
	open := strings.IndexByte(pattern, '{')
	if open < 0 {
		return []string{pattern}
	}
	end := open + strings.IndexByte(pattern[open:], '}')
	var lines []string
	for _, choice := range strings.Split(pattern[open+1:end], ",") {
		lines = append(lines, expand(pattern[:open]+choice+pattern[end+1:])...)
	}
	return lines
}

// parseForm reads a line of the table without braces.
func parseForm(line string) form {
	name, rest, _ := strings.Cut(line, " ")
	if base, ok := strings.CutSuffix(name, ".T"); ok { // the same type again
		name = base + base[strings.LastIndexByte(base, '.'):]
	}
	f := form{name: name}
	types := instr(name).Types
	left, right, _ := strings.Cut(rest, " = ")
	f.pair = strings.Contains(left, "|")
	side := func(text string) (list []operand) {
		vector := false
		for _, word := range strings.Fields(strings.ReplaceAll(text, "|", " ")) {
			if strings.HasPrefix(word, "0x") {
				f.imm = ", " + word
				continue
			}
			o := operand{vector: vector || word[0] == '<'}
			vector = o.vector && word[len(word)-1] != '>'
			word, o.values, _ = strings.Cut(strings.Trim(word, "<>"), ":")
			switch word {
			case "T":
				o.typ = types[len(types)-1]
			case "D":
				o.typ = types[0]
			case "W":
				o.typ = map[ptx.Type]ptx.Type{ptx.U16: ptx.U32, ptx.S16: ptx.S32, ptx.U32: ptx.U64, ptx.S32: ptx.S64}[types[0]]
			case "cc":
				o.typ, o.carry = ptx.Pred, true
			default:
				o.typ = typeNamed(word)
			}
			list = append(list, o)
		}
		return list
	}
	f.dst, f.src = side(left), side(right)
	return f
}

// atomic reports whether the form works on memory: Lookup does not know it, but an emulated GPU does.
func (f *form) atomic() bool {
	return strings.HasPrefix(f.name, "atom") || strings.HasPrefix(f.name, "red")
}

// id tells forms of one name apart.
func (f *form) id() string {
	s := f.name + f.imm
	if f.pair {
		s += " p|q"
	}
	if f.dst[0].vector {
		s += " unpack"
	}
	if f.src[0].vector {
		s += " pack"
	}
	if types := instr(f.name).Types; strings.HasPrefix(f.name, "cvt.") {
		if f.dst[0].typ.Bits() > types[0].Bits() && types[0] != ptx.TF32 {
			s += " into " + f.dst[0].typ.String()
		}
		if f.src[0].typ.Bits() > types[1].Bits() {
			s += " from " + f.src[0].typ.String()
		}
	}
	if n := len(f.dst) + len(f.src); strings.HasPrefix(f.name, "mov.b64") && n > 3 {
		s += fmt.Sprint(" ", n-1)
	}
	return strings.ReplaceAll(s, ", ", " ")
}

// instr is the instruction of a name without operands but for an immediate.
func instr(name string) *ptx.Instr {
	words := strings.Split(name, ".")
	in := &ptx.Instr{Op: words[0], Mods: words[1:], Text: name, Guard: -1}
	for _, w := range in.Mods {
		if t := typeNamed(w); t != ptx.NoType {
			in.Types = append(in.Types, t)
		}
	}
	return in
}

// instr is the instruction of the form, as parsed from a text.
func (f *form) instr() *ptx.Instr {
	in := instr(f.name)
	side := func(list []operand) {
		var regs []ptx.Operand
		for _, o := range list {
			if !o.carry {
				regs = append(regs, ptx.Operand{Kind: ptx.RegOperand})
			}
		}
		switch {
		case list[0].vector:
			regs = []ptx.Operand{{Kind: ptx.VecOperand, Elems: regs}}
		case f.pair && &list[0] == &f.dst[0]:
			regs = []ptx.Operand{{Kind: ptx.PairOperand, Elems: regs}}
		}
		in.Operands = append(in.Operands, regs...)
	}
	side(f.dst)
	side(f.src)
	if f.imm != "" {
		imm, err := strconv.ParseUint(f.imm[len(", "):], 0, 64)
		if err != nil {
			panic(err)
		}
		in.Operands = append(in.Operands, ptx.Operand{Kind: ptx.ImmOperand, Imm: imm})
	}
	return in
}

func typeNamed(name string) ptx.Type {
	for t := ptx.B8; t <= ptx.Pred; t++ {
		if t.String() == name {
			return t
		}
	}
	return ptx.NoType
}

func familyNames() []string {
	var names []string
	for name := range families {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
