package main

import (
	"fmt"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// An api lists the exported names of the promised packages, one a line, and the types of other
// packages of the module that promised names lead to.
type api struct {
	module   *module
	promised []string
	reached  []*types.TypeName
	seen     map[*types.TypeName]bool
	lines    []string
	at       string // the package whose lines are made
}

// newAPI lists the promised names. names is the number of exported names by package: of
// package level and methods, not fields.
func newAPI(x *exporter, promised []string) (lines []string, names map[string]int, err error) {
	a := &api{module: x.module, promised: promised, seen: map[*types.TypeName]bool{}}
	names = map[string]int{}
	var all []string
	for _, folder := range promised {
		p, err := x.pkg(folder)
		if err != nil {
			return nil, nil, err
		}
		a.lines = nil
		a.at = a.short(p)
		for _, name := range p.Scope().Names() {
			if o := p.Scope().Lookup(name); o.Exported() {
				a.object(o)
			}
		}
		for _, l := range a.lines {
			if !strings.Contains(l, ", field ") {
				names[folder]++
			}
		}
		all = append(all, slices.Sorted(slices.Values(a.lines))...)
	}
	a.lines = nil
	for i := 0; i < len(a.reached); i++ { // object may add to reached
		a.at = a.short(a.reached[i].Pkg())
		a.object(a.reached[i])
	}
	return append(all, slices.Sorted(slices.Values(a.lines))...), names, nil
}

func (a *api) add(format string, args ...any) {
	a.lines = append(a.lines, a.at+", "+fmt.Sprintf(format, args...))
}

// short is a package's name in the list: its folder, or for the module's own its name.
func (a *api) short(p *types.Package) string {
	switch folder, ok := a.module.inside(p.Path()); {
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
		a.add("func %s%s", o.Name(), a.signature(o.Signature()))
	case *types.TypeName:
		if o.IsAlias() {
			a.add("type %s = %s", o.Name(), a.typ(types.Unalias(o.Type())))
			if named, ok := types.Unalias(o.Type()).(*types.Named); ok {
				a.note(named.Origin().Obj(), true)
			}
			return
		}
		a.define(o)
	}
}

// define adds a type with its exported fields and methods.
func (a *api) define(o *types.TypeName) {
	named := o.Type().(*types.Named)
	name := o.Name()
	a.add("type %s%s %s", name, a.parameters(named.TypeParams()), a.kind(named.Underlying()))
	if s, ok := named.Underlying().(*types.Struct); ok {
		a.fields(name, s)
	}
	if i, ok := named.Underlying().(*types.Interface); ok {
		for m := range i.Methods() {
			if m.Exported() {
				a.add("method (%s) %s%s", name, m.Name(), a.signature(m.Signature()))
			} else {
				a.add("method (%s) that others cannot have: %s", name, m.Name())
			}
		}
		return
	}
	value := types.NewMethodSet(named)
	for m := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		if !m.Obj().Exported() {
			continue
		}
		receiver := "*" + name
		if value.Lookup(m.Obj().Pkg(), m.Obj().Name()) != nil {
			receiver = name
		}
		a.add("method (%s) %s%s", receiver, m.Obj().Name(), a.signature(m.Obj().(*types.Func).Signature()))
	}
}

// fields adds the exported fields of a struct, with those of an unexported embedded
// struct.
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

// kind is a type without its fields and methods.
func (a *api) kind(t types.Type) string {
	switch t := t.(type) {
	case *types.Struct:
		return "struct"
	case *types.Interface:
		if t.IsMethodSet() {
			return "interface"
		}
	}
	return a.typ(t)
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

// signature is what a function takes and gives, without the names of parameters.
func (a *api) signature(s *types.Signature) string {
	plain := types.NewSignatureType(nil, nil, nil, nameless(s.Params()), nameless(s.Results()), s.Variadic())
	return a.parameters(s.TypeParams()) + strings.TrimPrefix(a.typ(plain), "func")
}

func nameless(t *types.Tuple) *types.Tuple {
	var vars []*types.Var
	for v := range t.Variables() {
		vars = append(vars, types.NewParam(v.Pos(), v.Pkg(), "", v.Type()))
	}
	return types.NewTuple(vars...)
}

// typ is a type in words. It takes note of the types that are not promised.
func (a *api) typ(t types.Type) string {
	a.reach(t, map[types.Type]bool{})
	return types.TypeString(t, a.short)
}

// reach notes the types that t consists of, if they are of this module and of no promised package.
func (a *api) reach(t types.Type, seen map[types.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	switch t := t.(type) {
	case *types.Alias:
		a.reach(types.Unalias(t), seen)
	case *types.Named:
		for arg := range t.TypeArgs().Types() {
			a.reach(arg, seen)
		}
		a.note(t.Origin().Obj(), false)
	case interface{ Elem() types.Type }: // slices, arrays, pointers, maps, channels
		a.reach(t.Elem(), seen)
		if m, ok := t.(*types.Map); ok {
			a.reach(m.Key(), seen)
		}
	case *types.Signature:
		for _, tuple := range []*types.Tuple{t.Params(), t.Results()} {
			for v := range tuple.Variables() {
				a.reach(v.Type(), seen)
			}
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				a.reach(f.Type(), seen)
			}
		}
	}
}

// note adds a type to those that promised names lead to, if its package is of this module and not
// promised. Types of internal packages count where a promised name is their alias: without one
// other modules hardly use them.
func (a *api) note(o *types.TypeName, alias bool) {
	if o.Pkg() == nil || a.seen[o] || !o.Exported() {
		return
	}
	folder, ok := a.module.inside(o.Pkg().Path())
	if !ok || slices.Contains(a.promised, folder) || under(folder, "internal") && !alias {
		return
	}
	a.seen[o] = true
	a.reached = append(a.reached, o)
}

// changes are the lines that only one of two lists has: new lines after a +, lines that are gone
// after a -.
func changes(was, is []string) (out []string) {
	count := map[string]int{}
	for _, l := range was {
		count[l]--
	}
	for _, l := range is {
		count[l]++
	}
	for _, l := range slices.Sorted(maps.Keys(count)) {
		if n := count[l]; n > 0 {
			out = append(out, "+ "+l)
		} else if n < 0 {
			out = append(out, "- "+l)
		}
	}
	return out
}
