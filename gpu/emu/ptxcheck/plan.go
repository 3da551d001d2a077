package ptxcheck

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/simt"
)

// A plan is a parsed Case: all that is the same under every seed.
type plan struct {
	Case
	module   *ptx.Module
	program  *simt.Program
	lines    map[int]*ptx.Instr
	images   []*simt.Image // of each GPU
	memory   []memory
	launches [][]simt.Grid // of each GPU, in order
	threads  int           // resident at once, at most
	wants    []want
}

// A memory is a buffer or variable of a GPU, and its contents before the first launch.
type memory struct {
	name string
	gpu  int
	addr uint64
	size int
	data []byte // nil: nothing is written
	kind kind
}

// A want is the contents that a memory must have in the end.
type want struct {
	memory *memory
	data   []byte
}

// Addresses: each GPU's memory lies far from the others', with a gap after each allocation.
const (
	base    = uint64(1 << 40)
	perGPU  = uint64(1 << 36)
	gap     = 1 << 16
	most    = 64 << 20 // bytes of all buffers
	mostGPU = 16
)

func newPlan(c Case) (*plan, error) {
	p := &plan{Case: c, lines: map[int]*ptx.Instr{}}
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&p.GPUs, 1)
	def(&p.SMs, 8)
	def(&p.Seeds, 100)
	if p.Link == "" {
		p.Link = "nvlink"
	}
	switch {
	case p.GPUs < 1 || p.GPUs > mostGPU:
		return nil, wrongf("GPUs", "%d: want 1 to %d", p.GPUs, mostGPU)
	case p.SMs < 1 || p.SMs > 1024:
		return nil, wrongf("multiprocessors", "%d: want 1 to 1024", p.SMs)
	case p.Seeds < 1:
		return nil, wrongf("seeds", "%d: want at least 1", p.Seeds)
	case p.Link != "nvlink" && p.Link != "pcie" && p.Link != "none":
		return nil, wrongf("link", "%q: want nvlink, pcie or none", p.Link)
	case len(p.Launches) == 0:
		return nil, wrongf("launches", "none: say which kernel to launch")
	}
	var err error
	if p.module, err = ptx.Parse(p.Name, p.Text); err != nil {
		return nil, wrong("the text", err)
	}
	if p.program, err = simt.Compile(p.module); err != nil {
		return nil, wrong(p.Name, err)
	}
	for _, f := range p.module.Funcs {
		for i := range f.Body {
			p.lines[f.Body[i].Line] = &f.Body[i]
		}
	}
	for _, step := range []func() error{p.allocate, p.fill, p.load, p.prepare, p.expect} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// scope is the scope of expressions for a GPU.
func (p *plan) scope(gpu int) scope {
	return scope{rank: gpu, gpus: p.GPUs, element: -1, buffer: p.address}
}

// find is a buffer of a GPU.
func (p *plan) find(name string, gpu int) *memory {
	for i := range p.memory {
		if m := &p.memory[i]; m.name == name && m.gpu == gpu {
			return m
		}
	}
	return nil
}

func (p *plan) address(name string, gpu int) (uint64, error) {
	if m := p.find(name, gpu); m != nil {
		return m.addr, nil
	}
	var names []string
	for _, m := range p.memory {
		if m.gpu == 0 {
			names = append(names, m.name)
		}
	}
	if names == nil {
		return 0, fmt.Errorf("%q is no buffer: there is none", name)
	}
	return 0, fmt.Errorf("%q is no buffer: there are %s", name, strings.Join(names, ", "))
}

// A spec is "NAME=TYPE[COUNT]:CONTENTS", taken apart.
type spec struct{ name, typ, count, contents string }

func parseSpec(text string) (s spec, err error) {
	const form = "want NAME=TYPE[COUNT] or NAME=TYPE[COUNT]:CONTENTS, such as x=f32[256]:i"
	var rest string
	var ok bool
	if s.name, rest, ok = strings.Cut(text, "="); !ok {
		return s, errors.New(form)
	}
	if s.typ, rest, ok = strings.Cut(rest, "["); !ok {
		return s, errors.New(form)
	}
	if s.count, rest, ok = strings.Cut(rest, "]"); !ok {
		return s, errors.New(form)
	}
	if rest != "" {
		if s.contents, ok = strings.CutPrefix(rest, ":"); !ok || s.contents == "" {
			return s, errors.New(form)
		}
	}
	for i := range len(s.name) {
		if c := s.name[i]; !letter(c) && (i == 0 || c < '0' || c > '9') {
			return s, fmt.Errorf("%q is no name: want letters, digits and _", s.name)
		}
	}
	switch s.name {
	case "", "rank", "gpus", "i", "pick", "inf", "nan":
		return s, fmt.Errorf("a buffer cannot be called %q", s.name)
	}
	return s, nil
}

// allocate gives buffers and variables of the module their addresses.
func (p *plan) allocate() error {
	total := 0
	for gpu := range p.GPUs {
		next := base + uint64(gpu)*perGPU
		put := func(name string, size int, k kind) *memory {
			p.memory = append(p.memory, memory{name: name, gpu: gpu, addr: next, size: size, kind: k})
			next = (next + uint64(size) + gap + 511) &^ 511
			total += size
			return &p.memory[len(p.memory)-1]
		}
		for _, text := range p.Buffers {
			what := "buffer " + text
			s, err := parseSpec(text)
			if err != nil {
				return wrong(what, err)
			}
			if p.find(s.name, gpu) != nil {
				return wrongf(what, "there is a buffer %s already", s.name)
			}
			k, err := kindNamed(s.typ)
			if err != nil {
				return wrong(what, err)
			}
			n, err := eval(s.count, scope{rank: gpu, gpus: p.GPUs, element: -1})
			if err != nil {
				return wrong(what, err)
			}
			if n.float || n.n < 1 || n.n > most/int64(k.size) || total+int(n.n)*k.size > most {
				return wrongf(what, "%v elements: want at least 1, and at most 64 MiB in all", n.real())
			}
			put(s.name, int(n.n)*k.size, k)
		}
		for i := range p.module.Vars {
			v := &p.module.Vars[i]
			if v.Space != ptx.Global && v.Space != ptx.Const {
				continue
			}
			if total+v.Size() > most {
				return wrongf("variable "+v.Name, "%d bytes: want at most 64 MiB in all", v.Size())
			}
			if p.find(v.Name, gpu) != nil {
				return wrongf("buffer "+v.Name, "the text has a variable of this name, which is there without being asked for")
			}
			m := put(v.Name, max(1, v.Size()), kindOf(v.Type))
			m.data = make([]byte, m.size)
			copy(m.data, v.Init)
		}
	}
	return nil
}

// fill makes the contents of buffers. They may be addresses of others.
func (p *plan) fill() error {
	for gpu := range p.GPUs {
		for _, text := range p.Buffers {
			s, _ := parseSpec(text)
			if s.contents == "" {
				continue
			}
			m := p.find(s.name, gpu)
			var err error
			if m.data, err = m.kind.contents(m.size/m.kind.size, s.contents, p.scope(gpu)); err != nil {
				return wrong("buffer "+text, err)
			}
		}
	}
	return nil
}

// load puts the text on each GPU.
func (p *plan) load() error {
	for gpu := range p.GPUs {
		addresses := map[string]uint64{}
		for i := range p.module.Vars {
			if v := &p.module.Vars[i]; v.Space == ptx.Global || v.Space == ptx.Const {
				addresses[v.Name] = p.find(v.Name, gpu).addr
			}
		}
		for i := range p.module.Vars {
			v := &p.module.Vars[i]
			for _, r := range v.Relocs {
				to, ok := addresses[r.Name]
				if !ok {
					return wrongf("variable "+v.Name, "it holds the address of %s, which is none", r.Name)
				}
				b := p.find(v.Name, gpu).data[r.Offset:]
				for i := range 8 {
					b[i] = byte((to + uint64(r.Addend)) >> (8 * i))
				}
			}
		}
		p.images = append(p.images, p.program.Load(addresses))
	}
	return nil
}

// expect parses Case.Wants.
func (p *plan) expect() error {
	for _, text := range p.Wants {
		what := "want " + text
		name, contents, ok := strings.Cut(text, "=")
		if !ok || contents == "" {
			return wrongf(what, "want NAME=CONTENTS or NAME@GPU=CONTENTS, such as x=2*i")
		}
		name, at, one := strings.Cut(name, "@")
		only := value{n: -1}
		if one {
			var err error
			if only, err = eval(at, scope{gpus: p.GPUs, element: -1}); err != nil {
				return wrong(what, err)
			}
			if only.float || only.n < 0 || only.n >= int64(p.GPUs) {
				return wrongf(what, "GPUs are 0 to %d", p.GPUs-1)
			}
		}
		for gpu := range p.GPUs {
			if one && int(only.n) != gpu {
				continue
			}
			if _, err := p.address(name, gpu); err != nil {
				return wrong(what, err)
			}
			m := p.find(name, gpu)
			data, err := m.kind.contents(m.size/m.kind.size, contents, p.scope(gpu))
			if err != nil {
				return wrong(what, err)
			}
			p.wants = append(p.wants, want{m, data})
		}
	}
	return nil
}

// differs returns the index of the first wrong element, and the number of wrong elements.
func (w *want) differs(got []byte) (first, n int) {
	k := w.memory.kind
	for i := 0; i < len(got); i += k.size {
		a, b := got[i:i+k.size], w.data[i:i+k.size]
		if string(a) == string(b) || k.float && same(k.text(a), k.text(b)) {
			continue
		}
		if n++; n == 1 {
			first = i / k.size
		}
	}
	return first, n
}

// same reports whether two floats count as the same though their bits differ: -0 and 0, and NaNs.
func same(a, b string) bool {
	zero := func(s string) bool { return s == "0" || s == "-0" }
	nan := fmt.Sprint(math.NaN())
	return zero(a) && zero(b) || a == nan && b == nan
}
