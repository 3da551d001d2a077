package ptx

import (
	"fmt"
	"slices"
)

// Rules are the limits of Lint. A true field permits a feature.
type Rules struct {
	Entries     map[string]int // bytes of the parameter block of each kernel the module must have, and no other; nil: any
	Version     Version        // at most; zero: any
	Targets     []string       // one of these; nil: any
	AddressSize int            // zero: any
	Approx      bool           // approximate arithmetic, and denormals flushed to zero
	Local       bool           // local memory: spills, arrays on the stack
	Calls       bool           // calls, and functions to be called
	Absent      bool           // instructions of Absences
}

// A Problem is a violation of the rules.
type Problem struct {
	Line    int
	Func    string
	Warning bool // slow or unclean, not wrong
	Text    string
}

func (p Problem) String() string {
	s := fmt.Sprintf("line %d: ", p.Line)
	if p.Warning {
		s += "warning: "
	}
	if p.Func != "" {
		s += p.Func + ": "
	}
	return s + p.Text
}

// Lint checks a module that Parse has read against the rules, and whether its .version
// and .target have the features that its instructions need. Instructions of managed
// memory and in-switch reduction are never permitted.
func Lint(m *Module, rules Rules) []Problem {
	l := &linter{module: m, rules: rules, forms: map[string]*form{}}
	l.header()
	l.entries()
	for _, f := range m.Funcs {
		l.function(f)
	}
	slices.SortStableFunc(l.problems, func(a, b Problem) int { return a.Line - b.Line })
	return l.problems
}

type linter struct {
	module   *Module
	rules    Rules
	forms    map[string]*form
	problems []Problem
}

func (l *linter) add(line int, f *Func, warning bool, format string, args ...any) {
	p := Problem{Line: line, Warning: warning, Text: fmt.Sprintf(format, args...)}
	if f != nil {
		p.Func = f.Name
	}
	l.problems = append(l.problems, p)
}

func (l *linter) header() {
	m, r := l.module, l.rules
	if r.Version != (Version{}) && r.Version.less(m.Version) {
		l.add(1, nil, false, ".version %v, expected at most %v", m.Version, r.Version)
	}
	if r.Targets != nil && !slices.Contains(r.Targets, m.Target) {
		l.add(1, nil, false, ".target %s, expected one of %v", m.Target, r.Targets)
	}
	if r.AddressSize != 0 && m.AddressSize != r.AddressSize {
		l.add(1, nil, false, ".address_size %d, expected %d", m.AddressSize, r.AddressSize)
	}
	if since, ok := targets[m.Target]; !ok {
		l.add(1, nil, false, ".target %s, which is not known here", m.Target)
	} else if m.Version.less(since) {
		l.add(1, nil, false, ".target %s needs PTX %v, .version is %v", m.Target, since, m.Version)
	}
}

// targets are the architectures, with the PTX version that brought each.
var targets = map[string]Version{
	"sm_50": {4, 0}, "sm_52": {4, 1}, "sm_53": {4, 2}, "sm_60": {5, 0}, "sm_61": {5, 0}, "sm_62": {5, 0},
	"sm_70": {6, 0}, "sm_72": {6, 1}, "sm_75": {6, 3}, "sm_80": {7, 0}, "sm_86": {7, 1}, "sm_87": {7, 4}, "sm_89": {7, 8},
	"sm_90": {7, 8}, "sm_90a": {8, 0}, "sm_100": {8, 6}, "sm_100a": {8, 6}, "sm_120": {8, 7}, "sm_120a": {8, 7},
}

func (l *linter) entries() {
	want := l.rules.Entries
	if want == nil {
		return
	}
	have := map[string]bool{}
	for _, f := range l.module.Funcs {
		if !f.Entry || f.Declare {
			continue
		}
		have[f.Name] = true
		bytes, ok := want[f.Name]
		switch {
		case !ok:
			l.add(f.Line, f, false, "a kernel that is not expected")
		case bytes != f.ParamBytes:
			l.add(f.Line, f, false, "%d bytes of parameters, expected %d", f.ParamBytes, bytes)
		}
		if f.Linkage != "visible" {
			l.add(f.Line, f, false, "a kernel that is not .visible: it cannot be launched")
		}
	}
	var missing []string
	for name := range want {
		if !have[name] {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	for _, name := range missing {
		l.add(1, nil, false, "kernel %s is missing", name)
	}
}

func (l *linter) function(f *Func) {
	if !f.Entry && !l.rules.Calls {
		l.add(f.Line, f, false, "a function to be called, expected all to be inlined")
	}
	if !l.rules.Local {
		for i := range f.Vars {
			if v := &f.Vars[i]; v.Space == Local {
				l.add(f.Line, f, false,
					"%d bytes of local memory (%s), expected none: spills, or an array with an index that is not constant", v.Size(),
					v.Name)
			}
		}
	}
	for i := range f.Body {
		l.instruction(f, &f.Body[i])
	}
}

func (l *linter) instruction(f *Func, in *Instr) {
	name := in.Name()
	if in.Absent != "" {
		if !l.rules.Absent {
			l.add(in.Line, f, false, "%s: %s", name, in.Absent)
		}
		return
	}
	form := l.forms[name]
	if form == nil {
		var err error
		if form, err = formOf(name); err != nil {
			l.add(in.Line, f, false, "%v", err)
			return
		}
		l.forms[name] = form
	}
	l.needs(f, in, name, form.needs())
	for i := range in.Operands {
		if o := &in.Operands[i]; o.Kind == SpecialOperand {
			l.needs(f, in, o.Name, specials[o.Name].need)
		}
	}
	r := l.rules
	if !r.Approx {
		for _, mod := range []string{"approx", "full", "ftz"} {
			if in.Has(mod) {
				l.add(in.Line, f, false, "%s: .%s, expected exact arithmetic with denormals", name, mod)
			}
		}
	}
	if !r.Calls && in.Op == "call" {
		l.add(in.Line, f, false, "a call of %s, expected it to be inlined", in.Operands[1].Name)
	}
	if !r.Local && (in.Space == Local && in.Op != "isspacep" && in.Op != "cvta") {
		l.add(in.Line, f, false, "%s: local memory, expected none", name)
	}
	switch in.Op {
	case "ld", "st", "atom", "red", "ldu":
		if in.Space == Generic {
			l.add(in.Line, f, true, "%s: a generic address, which costs a test of the space; expected .global or .shared", name)
		}
	}
}

// needs compares a feature's needs with the module's version and target.
func (l *linter) needs(f *Func, in *Instr, what string, n need) {
	m := l.module
	if m.Version.less(n.version) {
		l.add(in.Line, f, false, "%s needs PTX %v, .version is %v", what, n.version, m.Version)
	}
	sm, arch, ok := architecture(m.Target)
	if ok && (sm < n.sm || n.arch != "" && arch != n.arch) {
		l.add(in.Line, f, false, "%s needs sm_%d%s, .target is %s", what, n.sm, n.arch, m.Target)
	}
}
