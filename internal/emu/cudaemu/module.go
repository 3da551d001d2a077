package cudaemu

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/fatbin"
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/simt"
)

// A module is a program in a context, with memory for its variables.
type module struct {
	handle  cuda.Module
	ctx     *context
	by      Caller
	image   *simt.Image
	globals map[string]*region
	funcs   map[string]*function
}

func (m *Machine) forgetModule(mod *module) {
	delete(m.modules, mod.handle)
	m.handles.back(moduleHandle, uintptr(mod.handle))
}

// unload frees the variables.
func (mod *module) unload() {
	m := mod.ctx.m
	for _, r := range mod.globals {
		if m.regions.find(r.addr) == r {
			m.drop(r)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(mod.funcs)) { // in the same order each time
		f := mod.funcs[name]
		delete(m.funcs, f.handle)
		m.handles.back(functionHandle, uintptr(f.handle))
	}
}

// versionOf is the version in the first .version line of a text.
func versionOf(text []byte) (v ptx.Version, ok bool) {
	for line := range bytes.Lines(text) {
		if word := bytes.Fields(line); len(word) > 1 && string(word[0]) == ".version" {
			_, err := fmt.Sscanf(string(word[1]), "%d.%d", &v.Major, &v.Minor)
			return v, err == nil
		}
	}
	return v, false
}

// programs are the texts compiled so far, by all machines: they are immutable,
// few, and slow to compile.
var programs sync.Map

// compile compiles a text for a driver of a CUDA version. r and log say why it cannot.
func compile(text []byte, driver int) (p *simt.Program, r cuda.Result, log string) {
	v, ok := versionOf(text)
	if !ok {
		return nil, cuda.ErrInvalidImage, "neither PTX nor anything else that is known"
	}
	if have := ptxOf(driver); have.Major < v.Major || have.Major == v.Major && have.Minor < v.Minor {
		return nil, cuda.ErrUnsupportedPTXVersion,
			fmt.Sprintf("PTX %d.%d, the driver knows up to %d.%d", v.Major, v.Minor, have.Major, have.Minor)
	}
	if p, ok := programs.Load(string(text)); ok {
		return p.(*simt.Program), 0, ""
	}
	tree, err := ptx.Parse("ptx", text)
	if err == nil {
		err = outdated(tree)
	}
	if err != nil {
		return nil, cuda.ErrInvalidPTX, err.Error()
	}
	p = simt.CompileEach(tree)
	programs.Store(string(text), p)
	return p, 0, ""
}

// outdated names a feature of a text that its PTX version or its target does not have.
func outdated(p *ptx.Module) error {
	for _, problem := range ptx.Lint(p, ptx.Rules{Approx: true, Local: true, Calls: true, Absent: true}) {
		if !problem.Warning {
			return fmt.Errorf("ptx: %v", problem)
		}
	}
	return nil
}

// ptxOf is the newest PTX that a driver of a CUDA version compiles. Source: PTX
// ISA, release history.
func ptxOf(driver int) ptx.Version {
	major, minor := driver/1000, driver%1000/10
	switch {
	case major >= 13:
		return ptx.Version{Major: major - 4, Minor: minor}
	case major == 12 && minor >= 6: // 12.5 and 12.6 have 8.5
		return ptx.Version{Major: 8, Minor: minor - 1}
	case major >= 11:
		return ptx.Version{Major: major - 4, Minor: minor}
	case major == 10:
		return ptx.Version{Major: 6, Minor: minor + 3}
	}
	return ptx.Version{Major: 6, Minor: min(minor, 2)}
}

// target is the compute capability of a text, and whether it runs on that one alone.
func target(p *ptx.Module) (major, minor int, exact bool) {
	var suffix byte
	fmt.Sscanf(p.Target, "sm_%d%c", &major, &suffix)
	return major / 10, major % 10, suffix == 'a'
}

// suits says why a program does not run on a device, "" if it does.
func (d *device) suits(p *ptx.Module) string {
	major, minor, exact := target(p)
	switch {
	case major > d.Major || major == d.Major && minor > d.Minor:
		return fmt.Sprintf("target %s is above the device's capability %d.%d", p.Target, d.Major, d.Minor)
	case exact && (major != d.Major || minor != d.Minor):
		return fmt.Sprintf("target %s is for that capability alone, the device has %d.%d", p.Target, d.Major, d.Minor)
	}
	return ""
}

// compiled reports whether an image is a cubin, which is an ELF file.
func compiled(image []byte) bool {
	const machine, device = 18, 190 // where an ELF file has its machine, in two bytes; EM_CUDA
	return bytes.HasPrefix(image, []byte("\x7fELF")) && len(image) > machine+1 && image[machine] == device &&
		image[machine+1] == 0
}

// texts are the programs of an image, one of which is to be taken: the first that suits the device.
func (c *call) texts(image []byte) []fatbin.Text {
	c.refuse(compiled(image), cuda.ErrNoBinaryForGPU, "compiled code; an emulated device runs PTX text alone")
	if !fatbin.Is(image) {
		return []fatbin.Text{{PTX: bytes.TrimRight(image, "\x00")}}
	}
	texts, err := fatbin.PTX(image)
	c.check(err, cuda.ErrNoBinaryForGPU)
	d := c.ctx.dev
	texts = slices.DeleteFunc(texts, func(t fatbin.Text) bool { return t.Capability > 10*d.Major+d.Minor })
	c.refuse(len(texts) == 0, cuda.ErrNoBinaryForGPU, "PTX for newer devices alone, this one has capability %d.%d",
		d.Major, d.Minor)
	return texts
}

func (m *Machine) ModuleLoadData(image []byte) (_ cuda.Module, err error) {
	c := m.call("cuModuleLoadData", &err)
	defer c.end()
	c.beginIn()
	if m.cfg.LoadsWait {
		c.awaitAlone(c.ctx)
	}
	var p *simt.Program
	var r cuda.Result
	var why string
	for _, t := range c.texts(image) {
		if p, r, why = compile(t.PTX, m.cfg.DriverVersion); r == 0 {
			if why = c.ctx.dev.suits(p.Module); why == "" {
				break
			}
			r = cuda.ErrInvalidPTX
		}
	}
	c.refuse(r != 0, r, "%s", why)
	mod := &module{ctx: c.ctx, by: c.caller(c.ctx.dev), globals: map[string]*region{}, funcs: map[string]*function{}}
	c.placeGlobals(mod, p)
	mod.handle = cuda.Module(m.handles.give(moduleHandle))
	m.modules[mod.handle] = mod
	return mod.handle, nil
}

// placeGlobals gives the variables of a module memory and their first values.
func (c *call) placeGlobals(mod *module, p *simt.Program) {
	defer func() {
		if mod.image == nil {
			mod.unload()
		}
	}()
	addresses := p.Functions()
	for i := range p.Module.Vars {
		v := &p.Module.Vars[i]
		if v.Space != ptx.Global && v.Space != ptx.Const {
			continue
		}
		r := c.allocate(c.ctx, regionGlobal, max(1, v.Size()))
		copy(r.chunk.data, v.Init)
		mod.globals[v.Name] = r
		addresses[v.Name] = r.addr
	}
	for i := range p.Module.Vars {
		v := &p.Module.Vars[i]
		for _, reloc := range v.Relocs {
			r := mod.globals[v.Name]
			to, ok := addresses[reloc.Name]
			if r == nil || !ok {
				c.fail(cuda.ErrInvalidPTX, "variable %s holds the address of %s, which is none", v.Name, reloc.Name)
			}
			put64(r.chunk.data[reloc.Offset:], to+uint64(reloc.Addend))
		}
	}
	mod.image = p.Load(addresses)
}

// onModule begins a call about a module. No context need be current.
func (c *call) onModule(h cuda.Module) *module {
	c.begin()
	mod := c.modules[h]
	c.refuse(mod == nil, cuda.ErrInvalidHandle, "%#x is no module, or was unloaded", uintptr(h))
	c.healthy(mod.ctx)
	return mod
}

func (m *Machine) ModuleUnload(h cuda.Module) (err error) {
	c := m.call("cuModuleUnload", &err)
	defer c.end()
	mod := c.onModule(h)
	c.unsafe()
	m.forgetModule(mod)
	defer mod.unload()
	c.awaitAlone(mod.ctx)
	return nil
}

func (m *Machine) ModuleGetFunction(h cuda.Module, name string) (_ cuda.Function, err error) {
	c := m.call("cuModuleGetFunction", &err)
	defer c.end()
	mod := c.onModule(h)
	if f := mod.funcs[name]; f != nil {
		return f.handle, nil
	}
	k, ok := mod.image.Program.Kernel(name)
	if err := mod.image.Program.Unable(name); err != nil {
		c.fail(cuda.ErrNotSupported, "%v: the emulator cannot run this kernel", err)
	}
	c.refuse(!ok, cuda.ErrNotFound, "no kernel %q in the module", name)
	f := &function{handle: cuda.Function(m.handles.give(functionHandle)), mod: mod, kernel: k}
	mod.funcs[name] = f
	m.funcs[f.handle] = f
	return f.handle, nil
}

func (m *Machine) ModuleGetGlobal(h cuda.Module, name string) (p uintptr, n int, err error) {
	c := m.call("cuModuleGetGlobal", &err)
	defer c.end()
	mod := c.onModule(h)
	r := mod.globals[name]
	_, kernel := mod.image.Program.Kernel(name)
	c.refuse(kernel, cuda.ErrInvalidValue, "%q is a kernel, not a variable", name)
	c.refuse(r == nil, cuda.ErrNotFound, "no variable %q in the module", name)
	return uintptr(r.addr), int(r.size), nil
}
