package main

import (
	"errors"
	"fmt"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// An api lists the exported names of packages, one a line.
type api struct {
	module *module
	lines  []string
	at     string // the package whose lines are made
}

// api lists the names of the promised packages, and then the types of other packages of the module that they lead to.
// Types of internal packages are among these where a promised name is their alias: without one other modules hardly
// use them.
func (m *module) api(promised []string) (all []string, err error) {
	a := &api{module: m}
	for _, folder := range promised {
		p := m.pkg(folder)
		if p == nil {
			return nil, fmt.Errorf("README.md promises %s, and there is no such package", folder)
		}
		a.lines, a.at = nil, a.short(p)
		for _, name := range p.Scope().Names() {
			if o := p.Scope().Lookup(name); o.Exported() {
				a.object(o)
			}
		}
		slices.Sort(a.lines)
		all = append(all, a.lines...)
	}
	seen := map[string]bool{}
	a.lines = slices.Clone(all)
	for i := 0; i < len(a.lines); i++ { // object adds lines
		for _, name := range qualified.FindAllStringSubmatch(a.lines[i], -1) {
			p := m.pkg(name[1])
			internal := slices.Contains(strings.Split(name[1], "/"), "internal")
			if seen[name[0]] || p == nil || slices.Contains(promised, name[1]) ||
				internal && !strings.HasSuffix(a.lines[i], " = "+name[0]) {
				continue
			}
			seen[name[0]], a.at = true, name[1]
			a.object(p.Scope().Lookup(name[2]))
		}
	}
	slices.Sort(a.lines[len(all):])
	return a.lines, nil
}

// qualified is the name of a type with its package's folder.
var qualified = regexp.MustCompile(`\b([a-z][\w/]*)\.([A-Z]\w*)`)

func (a *api) add(format string, args ...any) {
	a.lines = append(a.lines, a.at+", "+fmt.Sprintf(format, args...))
}

// short is a package's name in the list: its folder, or for the module's own its name.
func (a *api) short(p *types.Package) string {
	switch folder, ok := a.module.folder(p.Path()); {
	case !ok:
		return p.Path()
	case folder == ".":
		return a.module.name()
	default:
		return folder
	}
}

// object adds an exported name, and the fields and methods of a type.
func (a *api) object(o types.Object) {
	switch o := o.(type) {
	case *types.Const:
		a.add("const %s %s", o.Name(), a.typ(o.Type()))
	case *types.Var:
		a.add("var %s %s", o.Name(), a.typ(o.Type()))
	case *types.Func:
		a.add("func %s%s", o.Name(), a.signature(o))
	case *types.TypeName:
		if o.IsAlias() {
			a.add("type %s = %s", o.Name(), a.typ(types.Unalias(o.Type())))
			return
		}
		a.define(o)
	}
}

// define adds a type with its exported fields and methods.
func (a *api) define(o *types.TypeName) {
	named, name := o.Type().(*types.Named), o.Name()
	kind := a.typ(named.Underlying())
	switch t := named.Underlying().(type) {
	case *types.Struct:
		kind = "struct"
		a.fields(name, t)
	case *types.Interface:
		if t.IsMethodSet() {
			kind = "interface"
		}
		for m := range t.Methods() {
			if m.Exported() {
				a.add("method (%s) %s%s", name, m.Name(), a.signature(m))
			} else {
				a.add("method (%s) that others cannot have: %s", name, m.Name())
			}
		}
	}
	a.add("type %s%s %s", name, a.parameters(named.TypeParams()), kind)
	if types.IsInterface(named) {
		return
	}
	value := types.NewMethodSet(named)
	for m := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		receiver := "*" + name
		if value.Lookup(m.Obj().Pkg(), m.Obj().Name()) != nil {
			receiver = name
		}
		if m.Obj().Exported() {
			a.add("method (%s) %s%s", receiver, m.Obj().Name(), a.signature(m.Obj().(*types.Func)))
		}
	}
}

// fields adds the exported fields of a struct, with those of an unexported embedded struct.
func (a *api) fields(name string, s *types.Struct) {
	for f := range s.Fields() {
		switch inner, ok := f.Type().Underlying().(*types.Struct); {
		case f.Exported() && f.Embedded():
			a.add("field %s.%s embedded %s", name, f.Name(), a.typ(f.Type()))
		case f.Exported():
			a.add("field %s.%s %s", name, f.Name(), a.typ(f.Type()))
		case f.Embedded() && ok:
			a.fields(name, inner)
		}
	}
}

// parameters are the type parameters of a type or a function, in brackets.
func (a *api) parameters(p *types.TypeParamList) string {
	if p.Len() == 0 {
		return ""
	}
	var list []string
	for t := range p.TypeParams() {
		list = append(list, t.Obj().Name()+" "+a.typ(t.Constraint()))
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// signature is the types that a function takes and gives, without the names of parameters.
func (a *api) signature(f *types.Func) string {
	nameless := func(t *types.Tuple) *types.Tuple {
		var vars []*types.Var
		for v := range t.Variables() {
			vars = append(vars, types.NewParam(v.Pos(), v.Pkg(), "", v.Type()))
		}
		return types.NewTuple(vars...)
	}
	s := f.Signature()
	plain := types.NewSignatureType(nil, nil, nil, nameless(s.Params()), nameless(s.Results()), s.Variadic())
	return a.parameters(s.TypeParams()) + strings.TrimPrefix(a.typ(plain), "func")
}

func (a *api) typ(t types.Type) string { return types.TypeString(t, a.short) }

// file is the list that was read last.
func (m *module) file() string { return filepath.Join(m.root, "internal", "house", "api.txt") }

func (m *module) writeAPI(promised []string) error {
	lines, err := m.api(promised)
	if err != nil {
		return err
	}
	return os.WriteFile(m.file(), []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

// compareAPI has an error for each line that api.txt has not, after a +, and for each that is gone, after a -.
func (m *module) compareAPI(promised []string) error {
	text, err := os.ReadFile(m.file())
	if err != nil {
		return err
	}
	is, err := m.api(promised)
	if err != nil {
		return err
	}
	was := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	var errs []error
	for _, side := range []struct {
		mark    string
		of, not []string
	}{{"-", was, is}, {"+", is, was}} {
		for _, line := range side.of {
			if !slices.Contains(side.not, line) {
				errs = append(errs, fmt.Errorf("promised names have changed: %s %s "+
					"(if that is meant: go run ./internal/house -rewrite)", side.mark, line))
			}
		}
	}
	return errors.Join(errs...)
}
