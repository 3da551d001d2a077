package ptx

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A need is what an instruction requires.
type need struct {
	version Version
	sm      int
	arch    string // "a" for what only sm_90a has
}

// and is what both need together.
func (n need) and(m need) need {
	if n.version.less(m.version) {
		n.version = m.version
	}
	n.sm = max(n.sm, m.sm)
	if m.arch != "" {
		n.arch = m.arch
	}
	return n
}

func (v Version) less(w Version) bool {
	return v.Major < w.Major || v.Major == w.Major && v.Minor < w.Minor
}

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// A spec is a line of the table.
type spec struct {
	slots []slot
	roles []role
	need  need // without that of the modifiers
}

// A slot is where a modifier may stand.
type slot struct {
	optional bool
	choices  []choice
}

type choice struct {
	mod  string
	need need
}

// A role is what an operand is for.
type role struct {
	kind     byte
	typ      Type // NoType: see sel
	sel      byte // which type: 0 the instruction's first, '1' its second, 'w' twice as wide, 'a' an address; or a matrix
	optional bool
}

// specs is the table, by operation.
var specs = sync.OnceValue(func() map[string][]spec {
	m := map[string][]spec{}
	for _, line := range table {
		op, n := cutNeed(line[0])
		s := spec{need: n}
		for _, word := range strings.Fields(line[1]) {
			word, optional := strings.CutPrefix(word, "?")
			s.slots = append(s.slots, slot{optional, choices(word)})
		}
		for _, word := range strings.Fields(line[2]) {
			s.roles = append(s.roles, roleOf(word))
		}
		m[op] = append(m[op], s)
	}
	return m
})

func choices(word string) (list []choice) {
	for c := range strings.SplitSeq(word, ",") {
		mod, n := cutNeed(c)
		if sub, ok := modifierLists[mod]; ok {
			for _, c := range choices(sub) {
				list = append(list, choice{c.mod, c.need.and(n)})
			}
			continue
		}
		list = append(list, choice{mod, n})
	}
	return list
}

// cutNeed splits "bf16@7.8/90".
func cutNeed(s string) (string, need) {
	s, text, ok := strings.Cut(s, "@")
	if !ok {
		return s, need{}
	}
	version, arch, _ := strings.Cut(text, "/")
	var n need
	major, minor, _ := strings.Cut(version, ".")
	n.version.Major, _ = strconv.Atoi(major)
	n.version.Minor, _ = strconv.Atoi(minor)
	n.arch = strings.TrimLeft(arch, "0123456789")
	n.sm, _ = strconv.Atoi(strings.TrimSuffix(arch, n.arch))
	return s, n
}

func roleOf(word string) role {
	word, optional := strings.CutSuffix(word, "?")
	r := role{kind: word[0], optional: optional}
	switch _, typ, _ := strings.Cut(word, ":"); typ {
	case "":
	case "1", "wide", "addr", "A", "B", "C", "D", "M":
		r.sel = typ[0]
	default:
		r.typ = typeNames[typ]
	}
	return r
}

// specOf finds the line of the table that the modifiers fit.
func specOf(f *form) (*spec, error) {
	lines := specs()[f.op]
	if lines == nil {
		return nil, fmt.Errorf("unknown instruction %s, expected one of PTX that Ringo knows", clip(f.op))
	}
	best, far := 0, -1
	for i := range lines {
		n, ok := lines[i].match(f.mods, nil)
		if ok {
			return &lines[i], nil
		}
		if reordered := memoryOrder(f.op, f.mods); reordered != nil {
			if _, ok := lines[i].match(reordered, nil); ok {
				f.mods = reordered
				return &lines[i], nil
			}
		}
		if n > far {
			best, far = i, n
		}
	}
	if far < len(f.mods) {
		return nil, fmt.Errorf("%s does not have .%s there, expected %s", f.op, clip(f.mods[far]),
			lines[best].expected(f.mods, far))
	}
	return nil, fmt.Errorf("%s lacks a modifier, expected %s", f.op, lines[best].expected(f.mods, far))
}

// memoryOrder is the modifiers of an access to memory as the manual orders them: the order, the scope, the space, the
// rest. NVIDIA's assembler takes atom.cas.relaxed.sys and ld.global.acquire.gpu too, and libcu++ and others write them.
// The list is nil where nothing is to change.
func memoryOrder(op string, mods []string) []string {
	switch op {
	case "ld", "st", "atom", "red":
	default:
		return nil
	}
	rank := func(mod string) int {
		switch mod {
		case "relaxed", "acquire", "release", "acq_rel", "volatile":
			return 0
		case "cta", "cluster", "gpu", "sys":
			return 1
		case "global", "shared", "shared::cta", "shared::cluster":
			return 2
		}
		return 3
	}
	byRank := func(a, b string) int { return rank(a) - rank(b) }
	if slices.IsSortedFunc(mods, byRank) {
		return nil
	}
	mods = slices.Clone(mods)
	slices.SortStableFunc(mods, byRank)
	return mods
}

// match walks the slots; n is how many modifiers fitted, take sees each.
func (s *spec) match(mods []string, take func(choice)) (n int, ok bool) {
	for _, slot := range s.slots {
		c, found := slot.find(mods, n)
		if found {
			n++
			if take != nil {
				take(c)
			}
		} else if !slot.optional {
			return n, false
		}
	}
	return n, n == len(mods)
}

func (s slot) find(mods []string, n int) (choice, bool) {
	if n == len(mods) {
		return choice{}, false
	}
	for _, c := range s.choices {
		if c.mod == mods[n] {
			return c, true
		}
	}
	return choice{}, false
}

// expected says what may follow the first n modifiers.
func (s *spec) expected(mods []string, n int) string {
	var words []string
	at := 0
	for _, slot := range s.slots {
		if _, ok := slot.find(mods[:n], at); ok {
			at++
			words = nil
			continue
		}
		for _, c := range slot.choices {
			words = append(words, "."+c.mod)
		}
		if !slot.optional {
			break
		}
	}
	if len(words) == 0 {
		return "its operands"
	}
	if len(words) > 12 {
		words = append(words[:12], "...")
	}
	return strings.Join(words, ", ")
}

// needs is what the instruction requires, with its modifiers.
func (f *form) needs() need {
	n := f.spec.need
	f.spec.match(f.mods, func(c choice) { n = n.and(c.need) })
	return n
}
