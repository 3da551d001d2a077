package ptx

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// String is the module as PTX that parses to an equal module, but for lines and
// texts.
func (m *Module) String() string {
	p := &printer{}
	p.line(".version %v", m.Version)
	p.line(".target %s", strings.Join(append([]string{m.Target}, m.Options...), ", "))
	p.line(".address_size %d", m.AddressSize)
	for i := range m.Vars {
		p.variable("", &m.Vars[i])
	}
	for _, f := range m.Funcs {
		p.function(f)
	}
	return p.String()
}

// A printer collects text.
type printer struct{ strings.Builder }

func (p *printer) line(format string, args ...any) {
	fmt.Fprintf(p, format, args...)
	p.WriteByte('\n')
}

// declaration is a variable without its linkage: .global .align 8 .b8 x[16].
func declaration(v *Var) string {
	s := "." + v.Space.String()
	if v.Align != v.Type.Size() {
		s += fmt.Sprintf(" .align %d", v.Align)
	}
	s += " ." + v.Type.String() + " " + v.Name
	switch {
	case v.Count == 0 && v.Extern:
		s += "[]"
	case v.Count != 1:
		s += fmt.Sprintf("[%d]", v.Count)
	}
	return s
}

func linkage(s string) string {
	if s == "" {
		return ""
	}
	return "." + s + " "
}

func (p *printer) variable(indent string, v *Var) {
	init := ""
	if v.Init != nil {
		init = " = " + initialiser(v)
	}
	p.line("%s%s%s%s;", indent, linkage(v.Linkage), declaration(v), init)
}

// initialiser prints whole elements; the last may have lost zeros at its end.
func initialiser(v *Var) string {
	size := v.Type.Size()
	var list []string
	relocs := v.Relocs
	for at := 0; at < len(v.Init); at += size {
		if len(relocs) > 0 && relocs[0].Offset == at {
			list = append(list, relocs[0].String())
			relocs = relocs[1:]
			continue
		}
		var b [16]byte
		copy(b[:size], v.Init[at:])
		x := binary.LittleEndian.Uint64(b[:])
		switch v.Type {
		case F32:
			list = append(list, fmt.Sprintf("0f%08X", x))
		case F64:
			list = append(list, fmt.Sprintf("0d%016X", x))
		case B128:
			list = append(list, strconv.FormatInt(int64(x), 10))
		default:
			list = append(list, strconv.FormatUint(x, 10))
		}
	}
	if v.Count == 1 {
		return list[0]
	}
	return "{" + strings.Join(list, ", ") + "}"
}

func (r Reloc) String() string {
	s := r.Name
	if r.Generic {
		s = "generic(" + s + ")"
	}
	return s + offset(uint64(r.Addend))
}

func (p *printer) function(f *Func) {
	kind := ".func"
	if f.Entry {
		kind = ".entry"
	}
	p.WriteString("\n" + linkage(f.Linkage) + kind)
	if f.Results != nil {
		p.WriteString(" (" + params(f.Results) + ")")
	}
	p.line(" %s(%s)", f.Name, params(f.Params))
	for _, d := range []struct {
		name string
		dim  Dim
	}{{"maxntid", f.MaxThreads}, {"reqntid", f.ReqThreads}, {"reqnctapercluster", f.ReqCluster}} {
		if d.dim != (Dim{}) {
			p.line(".%s %d, %d, %d", d.name, d.dim[0], d.dim[1], d.dim[2])
		}
	}
	if f.MinBlocks != 0 {
		p.line(".minnctapersm %d", f.MinBlocks)
	}
	if f.MaxRegs != 0 {
		p.line(".maxnreg %d", f.MaxRegs)
	}
	if f.MaxCluster != 0 {
		p.line(".maxclusterrank %d", f.MaxCluster)
	}
	if f.Explicit {
		p.line(".explicitcluster")
	}
	if f.Declare {
		p.line(";")
		return
	}
	p.line("{")
	p.registers(f.Regs)
	for i := range f.Vars {
		p.variable("\t", &f.Vars[i])
	}
	for _, name := range slices.Sorted(maps.Keys(f.Tables)) {
		p.line("%s: .branchtargets %s;", name, strings.Join(f.Tables[name], ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Prototypes)) {
		results, of := "", f.Prototypes[name]
		if len(of.Results) > 0 {
			results = "(" + params(of.Results) + ") "
		}
		p.line("%s: .callprototype %s_ (%s);", name, results, params(of.Params))
	}
	labels := make([][]string, len(f.Body)+1)
	for _, name := range slices.Sorted(maps.Keys(f.Labels)) {
		labels[f.Labels[name]] = append(labels[f.Labels[name]], name)
	}
	for i := range labels {
		for _, name := range labels[i] {
			p.line("%s:", name)
		}
		if i < len(f.Body) {
			p.line("\t%s", f.format(&f.Body[i]))
		}
	}
	p.line("}")
}

func params(list []Var) string {
	var words []string
	for i := range list {
		words = append(words, declaration(&list[i]))
	}
	return strings.Join(words, ", ")
}

// registers prints runs such as %r0, %r1, %r2 as %r<3>.
func (p *printer) registers(regs []Reg) {
	for len(regs) > 0 {
		prefix, ok := strings.CutSuffix(regs[0].Name, "0")
		n := 1
		for ok && n < len(regs) && n < maxRegisters && regs[n].Type == regs[0].Type &&
			regs[n].Name == prefix+strconv.Itoa(n) {
			n++
		}
		if n > 1 && prefix != "" && prefix != "%" {
			p.line("\t.reg .%s %s<%d>;", regs[0].Type, prefix, n)
		} else {
			n = 1
			p.line("\t.reg .%s %s;", regs[0].Type, regs[0].Name)
		}
		regs = regs[n:]
	}
}

// format is an instruction of the function, with its guard and semicolon.
func (f *Func) format(in *Instr) string {
	var s strings.Builder
	if in.Guard >= 0 {
		s.WriteByte('@')
		if in.GuardNot {
			s.WriteByte('!')
		}
		s.WriteString(f.Regs[in.Guard].Name + " ")
	}
	s.WriteString(in.Name())
	if in.Op == "call" {
		results, name, args := in.Operands[0], in.Operands[1], in.Operands[2]
		s.WriteByte(' ')
		if len(results.Elems) > 0 {
			s.WriteString("(" + f.list(results.Elems) + "), ")
		}
		s.WriteString(f.operand(&name))
		if len(args.Elems) > 0 {
			s.WriteString(", (" + f.list(args.Elems) + ")")
		}
		if len(in.Operands) > 3 {
			s.WriteString(", " + in.Operands[3].Name)
		}
	} else if len(in.Operands) > 0 {
		s.WriteString(" " + f.list(in.Operands))
	}
	s.WriteByte(';')
	return s.String()
}

func (f *Func) list(operands []Operand) string {
	words := make([]string, len(operands))
	for i := range operands {
		words[i] = f.operand(&operands[i])
	}
	return strings.Join(words, ", ")
}

func (f *Func) operand(o *Operand) string {
	switch o.Kind {
	case RegOperand:
		if o.Not {
			return "!" + f.Regs[o.Reg].Name
		}
		return f.Regs[o.Reg].Name
	case ImmOperand:
		switch o.Float {
		case F32:
			return fmt.Sprintf("0f%08X", o.Imm)
		case F64:
			return fmt.Sprintf("0d%016X", o.Imm)
		}
		return strconv.FormatInt(int64(o.Imm), 10)
	case AddrOperand:
		base := o.Name
		if o.Reg >= 0 {
			base = f.Regs[o.Reg].Name
		}
		if base == "" {
			return fmt.Sprintf("[%d]", int64(o.Imm))
		}
		return "[" + base + offset(o.Imm) + "]"
	case NameOperand:
		return o.Name + offset(o.Imm)
	case VecOperand:
		return "{" + f.list(o.Elems) + "}"
	case PairOperand:
		return f.operand(&o.Elems[0]) + "|" + f.operand(&o.Elems[1])
	case SinkOperand:
		return "_"
	}
	return o.Name
}

func offset(n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("+%d", int64(n))
}
