package simt_test

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/must"
)

// ptxOf is a module with a kernel "fN" for each form. Thread i loads the words
// of case i, executes the instruction and stores the results, a word each.
func ptxOf(list []form) string {
	var b strings.Builder
	b.WriteString(".version 8.1\n.target sm_90\n.address_size 64\n")
	for i := range list {
		fmt.Fprintf(&b, "\n// %s\n%s", list[i].id(), list[i].kernel(fmt.Sprintf("f%d", i)))
	}
	return b.String()
}

// kernel is the text of the form's kernel. All registers are untyped.
func (f *form) kernel(name string) string {
	var regs, load, before, after, store strings.Builder
	operands := func(prefix string, list []operand) string {
		var names []string
		for i, o := range list {
			reg := fmt.Sprintf("%%%s%d", prefix, i)
			bits := max(16, o.typ.Bits())
			switch {
			case o.carry:
				fmt.Fprintf(&regs, "  .reg .b32 %s;\n", reg)
				f.carry(&before, &after, prefix == "s", reg)
				bits = 32
			case o.typ.Bits() == 1:
				fmt.Fprintf(&regs, "  .reg .pred %s;\n  .reg .b32 %s_;\n", reg, reg)
			default:
				fmt.Fprintf(&regs, "  .reg .b%d %s;\n", bits, reg)
			}
			pred := !o.carry && o.typ.Bits() == 1
			switch word := fmt.Sprintf("%d", 8*i); {
			case prefix == "s" && pred:
				fmt.Fprintf(&load, "  ld.global.b32 %s_, [%%in+%s];\n  setp.ne.u32 %s, %s_, 0;\n", reg, word, reg, reg)
			case prefix == "s":
				fmt.Fprintf(&load, "  ld.global.b%d %s, [%%in+%s];\n", bits, reg, word)
			case pred:
				fmt.Fprintf(&store, "  selp.u32 %s_, 1, 0, %s;\n  st.global.b32 [%%out+%s], %s_;\n", reg, reg, word, reg)
			default:
				fmt.Fprintf(&store, "  st.global.b%d [%%out+%s], %s;\n", bits, word, reg)
			}
			if !o.carry {
				names = append(names, reg)
			}
		}
		if list[0].vector {
			return "{" + strings.Join(names, ", ") + "}"
		}
		if prefix == "d" && f.pair {
			return strings.Join(names, "|")
		}
		return strings.Join(names, ", ")
	}
	dst := operands("d", f.dst)
	src := operands("s", f.src)
	if f.atomic() {
		last := len(f.dst) - 1
		space, bits := in(f.name, "global", "shared"), f.dst[0].typ.Bits()
		fmt.Fprintf(&regs, "  .shared .align 8 .b8 memory[1024];\n  .reg .b32 %%a;\n")
		place := fmt.Sprintf("[%%out+%d]", 8*last)
		if space == "shared" {
			place = "[%a]"
			before.WriteString("  mov.u32 %a, memory;\n  mov.u32 %t, %tid.x;\n  mad.lo.u32 %a, %t, 8, %a;\n")
		}
		fmt.Fprintf(&before, "  st.%s.b%d %s, %%s0;\n", space, bits, place)
		fmt.Fprintf(&after, "  ld.%s.b%d %%d%d, %s;\n", space, bits, last, place)
		dst = strings.TrimSuffix(dst, fmt.Sprintf("%%d%d", last)) + place
		src = strings.TrimPrefix(src, "%s0, ")
	}
	return fmt.Sprintf(`.visible .entry %s(.param .u64 in, .param .u64 out, .param .u64 n) {
  .reg .pred %%p;
  .reg .b32 %%i, %%t;
  .reg .b64 %%in, %%out, %%n, %%w;
%s  ld.param.u64 %%in, [in];
  ld.param.u64 %%out, [out];
  ld.param.u64 %%n, [n];
  mov.u32 %%i, %%ctaid.x;
  mov.u32 %%t, %%ntid.x;
  mul.lo.u32 %%i, %%i, %%t;
  mov.u32 %%t, %%tid.x;
  add.u32 %%i, %%i, %%t;
  cvt.u64.u32 %%w, %%i;
  setp.ge.u64 %%p, %%w, %%n;
  @%%p ret;
  cvta.to.global.u64 %%in, %%in;
  cvta.to.global.u64 %%out, %%out;
  mad.wide.u32 %%in, %%i, %d, %%in;
  mad.wide.u32 %%out, %%i, %d, %%out;
%s%s  %s %s, %s%s;
%s%s  ret;
}
`, name, regs.String(), 8*len(f.src), 8*len(f.dst), load.String(), before.String(), f.name, dst, src, f.imm, after.String(), store.String())
}

// in is the one of the words that is in the name.
func in(name string, words ...string) string {
	for _, w := range words {
		if strings.Contains(name, "."+w+".") {
			return w
		}
	}
	panic(name)
}

// carry moves the register into the carry flag before, or out of it after the
// instruction. Subtractions have a borrow.
func (f *form) carry(before, after *strings.Builder, in bool, reg string) {
	sub := strings.HasPrefix(f.name, "sub")
	switch {
	case in && sub:
		fmt.Fprintf(before, "  sub.cc.u32 %%t, 0, %s;\n", reg)
	case in:
		fmt.Fprintf(before, "  add.cc.u32 %%t, %s, 0xffffffff;\n", reg)
	case sub:
		fmt.Fprintf(after, "  subc.u32 %s, 0, 0;\n  and.b32 %s, %s, 1;\n", reg, reg, reg)
	default:
		fmt.Fprintf(after, "  addc.u32 %s, 0, 0;\n", reg)
	}
}

// A gpu runs forms.
type gpu struct {
	d   cuda.Driver
	dev cuda.Device
}

// newGPU makes the driver's first device current on this thread until the test ends.
func newGPU(t *testing.T, d cuda.Driver) *gpu {
	dev, ctx := gputest.Context(t, d, 0)
	runtime.LockOSThread()
	require.NoError(t, d.CtxPushCurrent(ctx))
	t.Cleanup(func() {
		must.Get(d.CtxPopCurrent())
		runtime.UnlockOSThread()
	})
	return &gpu{d: d, dev: dev}
}

// runAll gives the results of forms, row after row, nil for those that the
// driver refused; errs says why.
func (g *gpu) runAll(list []form) (results [][][]uint64, errs []error) {
	const together = 32 // kernels in a module
	results = make([][][]uint64, len(list))
	for start := 0; start < len(list); start += together {
		part := list[start:min(len(list), start+together)]
		err := g.run(part, results[start:])
		if err == nil {
			continue
		}
		for i := range part { // one is wrong: find it
			if err := g.run(part[i:i+1], results[start+i:]); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", part[i].id(), err))
			}
		}
	}
	return results, errs
}

// run is runAll for forms in one module.
func (g *gpu) run(list []form, results [][][]uint64) error {
	m, err := g.d.ModuleLoadData(append([]byte(ptxOf(list)), 0))
	if err != nil {
		return err
	}
	defer g.d.ModuleUnload(m)
	for i := range list {
		f, err := g.d.ModuleGetFunction(m, fmt.Sprintf("f%d", i))
		if err != nil {
			return err
		}
		if results[i], err = g.launch(f, len(list[i].dst), cases(&list[i])); err != nil {
			return err
		}
	}
	return nil
}

// launch executes a form's kernel on all cases.
func (g *gpu) launch(f cuda.Function, dsts int, rows [][]uint64) ([][]uint64, error) {
	var in []byte
	for _, row := range rows {
		for _, v := range row {
			in = binary.LittleEndian.AppendUint64(in, v)
		}
	}
	out := make([]byte, 8*dsts*len(rows))
	src, err := g.d.MemAlloc(len(in))
	if err != nil {
		return nil, err
	}
	defer g.d.MemFree(src)
	dst, err := g.d.MemAlloc(len(out))
	if err != nil {
		return nil, err
	}
	defer g.d.MemFree(dst)
	args := struct {
		in, out uintptr
		n       uint64
	}{src, dst, uint64(len(rows))}
	for _, step := range []func() error{
		func() error { return g.d.MemsetD8(dst, 0, len(out)) },
		func() error { return g.d.MemcpyHtoD(src, in) },
		func() error {
			l := cuda.Launch{Grid: cuda.Dim3{X: uint32(len(rows)+127) / 128}, Block: cuda.Dim3{X: 128}}
			return g.d.LaunchKernel(f, &l, cuda.ArgsOf(&args))
		},
		func() error { return g.d.CtxSynchronize() },
		func() error { return g.d.MemcpyDtoH(out, dst) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	results := make([][]uint64, len(rows))
	for i := range results {
		for range dsts {
			results[i] = append(results[i], binary.LittleEndian.Uint64(out))
			out = out[8:]
		}
	}
	return results, nil
}
