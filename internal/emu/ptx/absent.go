package ptx

import (
	"fmt"
	"slices"
	"strings"
)

// An Absence is instructions of PTX that the emulator does not carry out. A kernel with one is refused, others of its
// module are not.
type Absence struct {
	Ops     string // operations, with spaces between; a * at an end stands for any letters
	Mods    string // one of these modifiers makes it absent, if there are any
	What    string // what they are
	Instead string // what to use
	Example string
}

// Absences are what PTX 8.8 has for devices up to capability 9.0, and is not carried out. docs/refused.md is made of
// them.
var Absences = []Absence{
	{"wgmma", "", "products of matrices by four warps", "mma.sync",
		"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd0, %rd1, 1, 1, 1, 0, 0;"},
	{"mma", "sp sp::ordered_metadata", "products of sparse matrices", "mma.sync of whole ones",
		"mma.sp.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r0,%r1}, {%r2,%r3}, {%r4,%r5}, {%r0,%r1}, %r6, 0;"},
	{"mma wmma", "s4 u4 b1", "products of 4 bits and of 1 bit", "types of 8 bits",
		"mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32 {%r0,%r1}, {%r2}, {%r3}, {%r0,%r1};"},
	{"cp", "tensor", "copies by tensor maps", "cp.async.bulk of bytes",
		"cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%rd0, {%r0}], [tile];"},
	{"tensormap", "", "changes of tensor maps", "cp.async.bulk of bytes",
		"tensormap.replace.tile.global_address.global.b1024.b64 [%rd0], %rd1;"},
	{"tex tld4 txq istypep", "", "textures", "ld.global.nc", "tex.2d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%rd0, {%r0,%r1}];"},
	{"suld sust sured suq", "", "surfaces", "ld.global and st.global", "suld.b.2d.b32.trap %r0, [%rd0, {%r1,%r2}];"},
	{"multimem", "", "multicast between GPUs", "ld, st and red of each GPU's memory",
		"multimem.ld_reduce.relaxed.sys.global.add.f32 %f0, [%rd0];"},
	{"alloca stacksave stackrestore", "", "local memory of a size that is not constant",
		"an array of constant size, or malloc",
		"alloca.u64 %rd0, %rd1, 16;"},
	{"vadd* vsub* vavrg* vabsdiff* vmin* vmax* vshl vshr vmad vset*", "", "video instructions",
		"instructions on whole registers",
		"vadd4.u32.u32.u32 %r0, %r1, %r2, %r3;"},
	{"tcgen05", "", "tensor memory", "mma.sync", "tcgen05.wait::ld.sync.aligned;"},
}

// has reports whether the instructions are these.
func (a *Absence) has(op string, mods []string) bool {
	named := func(pattern string) bool {
		prefix, any := strings.CutSuffix(pattern, "*")
		return op == pattern || any && strings.HasPrefix(op, prefix)
	}
	if !slices.ContainsFunc(strings.Fields(a.Ops), named) {
		return false
	}
	if a.Mods == "" {
		return true
	}
	words := strings.Fields(a.Mods)
	return slices.ContainsFunc(mods, func(m string) bool { return slices.Contains(words, m) })
}

// absent says why an instruction that PTX has is not carried out, "" if it may be.
func absent(op string, mods []string) string {
	for i := range Absences {
		if a := &Absences[i]; a.has(op, mods) {
			return fmt.Sprintf("%s: not emulated, expected %s", a.What, a.Instead)
		}
	}
	return ""
}

// skipInstruction passes over the operands of an instruction that is not carried out, and gives them as one name.
func (p *parser) skipInstruction() []Operand {
	from := p.tok.off
	for !p.tok.is(";") {
		if p.tok.kind == endToken {
			p.failAt(p.tok, "%s, expected “;”", p.tok)
		}
		p.advance()
	}
	if text := strings.TrimSpace(p.src[from:p.tok.off]); text != "" {
		return []Operand{{Kind: NameOperand, Reg: -1, Name: text}}
	}
	return nil
}
