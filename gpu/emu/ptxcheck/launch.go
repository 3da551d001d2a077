package ptxcheck

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/simt"
)

// prepare makes the launches of each GPU.
func (p *plan) prepare() error {
	p.launches = make([][]simt.Grid, p.GPUs)
	for _, l := range p.Launches {
		k, err := p.kernel(l.Kernel)
		if err != nil {
			return err
		}
		if err := l.fill("kernel "+k.Name, p.GPUs); err != nil {
			return err
		}
		for gpu := range p.GPUs {
			if len(l.On) > 0 && !slices.Contains(l.On, gpu) {
				continue
			}
			args, err := p.args(k, l.Args, gpu)
			if err != nil {
				return err
			}
			p.launches[gpu] = append(p.launches[gpu], simt.Grid{
				Image: p.images[gpu], Kernel: k, Device: gpu, Dim: l.Grid, Block: l.Block, Shared: l.Shared, Args: args,
				Cooperative: l.Cooperative,
			})
		}
	}
	for gpu := range p.launches {
		most := 0
		for _, g := range p.launches[gpu] {
			most = max(most, min(p.SMs*2048, g.Dim[0]*g.Dim[1]*g.Dim[2]*g.Block[0]*g.Block[1]*g.Block[2]))
		}
		p.threads += most
	}
	if p.Instructions == 0 {
		p.Instructions = max(20_000_000, uint64(4*perThread*p.threads))
	}
	r := p.start(p.First) // to have each launch tried: a device or a kernel may refuse it
	for gpu := range p.launches {
		for i := range p.launches[gpu] {
			g := p.launches[gpu][i]
			if err := r.world.Start(&g); err != nil {
				return wrong("launch", err)
			}
		}
	}
	return nil
}

// fill completes the extents of a launch, and refuses what cannot be.
func (l *Launch) fill(what string, gpus int) error {
	for i := range 3 {
		for _, v := range []*int{&l.Grid[i], &l.Block[i]} {
			if *v == 0 {
				*v = 1
			}
			if *v < 0 || *v > 1<<16 {
				return wrongf(what, "grid %v of blocks %v: extents are 1 to 65,536", l.Grid, l.Block)
			}
		}
	}
	if blocks := l.Grid[0] * l.Grid[1] * l.Grid[2]; blocks > 1<<20 {
		return wrongf(what, "%d blocks: at most 1,048,576", blocks)
	}
	if l.Shared < 0 {
		return wrongf(what, "%d bytes of shared memory", l.Shared)
	}
	for _, gpu := range l.On {
		if gpu < 0 || gpu >= gpus {
			return wrongf(what, "GPU %d: GPUs are 0 to %d", gpu, gpus-1)
		}
	}
	return nil
}

// kernel is a kernel of the text.
func (p *plan) kernel(name string) (*simt.Kernel, error) {
	var all []string
	for _, f := range p.module.Funcs {
		if f.Entry && !f.Declare {
			all = append(all, f.Name)
		}
	}
	switch {
	case len(all) == 0:
		return nil, wrongf(p.Name, "it has no kernel (.entry)")
	case name == "" && len(all) == 1:
		name = all[0]
	case name == "":
		return nil, wrongf(p.Name, "say which kernel: it has %s", strings.Join(all, ", "))
	}
	k, ok := p.program.Kernel(name)
	if !ok {
		return nil, wrongf("kernel "+name, "%s has none of this name; it has %s", p.Name, strings.Join(all, ", "))
	}
	return k, nil
}

// args makes the parameter block of a kernel on a GPU.
func (p *plan) args(k *simt.Kernel, texts []string, gpu int) ([]byte, error) {
	if len(texts) != len(k.Func.Params) {
		return nil, wrongf("kernel "+k.Name, "%d arguments, want %d: %s", len(texts), len(k.Func.Params), k.Func.Signature())
	}
	block := make([]byte, k.Func.ParamBytes)
	for i, v := range k.Func.Params {
		if err := p.arg(block[v.Offset:v.Offset+v.Size()], &v, texts[i], gpu); err != nil {
			return nil, wrong(fmt.Sprintf("argument %d of kernel %s (.%v %s)", i+1, k.Name, v.Type, v.Name), err)
		}
	}
	return block, nil
}

// arg makes the bytes of a parameter: of an expression, of TYPE:EXPRESSION, or of a list of
// them in braces, which is a struct.
func (p *plan) arg(b []byte, v *ptx.Var, text string, gpu int) error {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "{"); ok {
		inner, ok = strings.CutSuffix(inner, "}")
		if !ok {
			return fmt.Errorf("%q: { without its }", text)
		}
		return p.fields(b, inner, gpu)
	}
	k := kindOf(v.Type)
	typ, rest, typed := strings.Cut(text, ":")
	if typed {
		var err error
		if k, err = kindNamed(typ); err != nil {
			return err
		}
		text = rest
	}
	if k.size != len(b) {
		return fmt.Errorf("%q: the parameter has %d bytes: write its fields in braces, such as {x, y, u32:7}", text, len(b))
	}
	x, err := eval(text, p.scope(gpu))
	if err != nil {
		return err
	}
	if x.float && !typed && k.size == 4 && v.Type == ptx.B32 { // as compilers declare float
		k = kinds["f32"]
	}
	return k.put(b, x)
}

// fields are the members of a struct, laid out as in C. NAME@* is the addresses of a
// buffer on all GPUs. Bytes behind the last member are 0.
func (p *plan) fields(b []byte, text string, gpu int) error {
	at := 0
	field := func(k kind, x value) error {
		at = (at + k.size - 1) / k.size * k.size
		if at+k.size > len(b) {
			return fmt.Errorf("the fields have more than the %d bytes of the parameter", len(b))
		}
		err := k.put(b[at:], x)
		at += k.size
		return err
	}
	for _, f := range split(text) {
		f = strings.TrimSpace(f)
		if name, ok := strings.CutSuffix(f, "@*"); ok {
			for other := range p.GPUs {
				a, err := p.address(name, other)
				if err == nil {
					err = field(kinds["ptr"], value{n: int64(a), address: true})
				}
				if err != nil {
					return err
				}
			}
			continue
		}
		k := kinds["ptr"]
		typ, rest, typed := strings.Cut(f, ":")
		if typed {
			var err error
			if k, err = kindNamed(typ); err != nil {
				return err
			}
			f = rest
		}
		x, err := eval(f, p.scope(gpu))
		if err != nil {
			return err
		}
		if !typed && !x.address {
			return fmt.Errorf("%q: say its type, such as u32:%s", f, f)
		}
		if err := field(k, x); err != nil {
			return err
		}
	}
	return nil
}
