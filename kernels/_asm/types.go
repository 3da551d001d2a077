package main

import . "github.com/mmcloughlin/avo/operand"

// lanes are how elements of a type lie in registers and what is done to them.
type lanes struct {
	bits    int  // of the scalar
	unroll  int  // grains a turn of the loop
	crowded bool // more constants than 16 registers can hold
	prepare func(m *machine)
	load    func(m *machine, at Mem) []vec    // a register's width of memory
	store   func(m *machine, v []vec, at Mem) // undoes load
	canon   func(m *machine, v vec) vec       // gives every NaN the same bits
	round   func(m *machine, v vec) vec       // to a number of the type; nil if lanes are the type
	add     func(m *machine, a, b vec) vec
	mul     func(m *machine, a, b vec) vec
	max     func(m *machine, a, b vec) vec
	min     func(m *machine, a, b vec) vec
}

// direct are lanes that look like the memory.
func direct(bits int) *lanes {
	same := func(_ *machine, v vec) vec { return v }
	return &lanes{
		bits: bits, unroll: 4,
		prepare: func(*machine) {},
		load:    func(m *machine, at Mem) []vec { return []vec{m.load(at)} },
		store:   func(m *machine, v []vec, at Mem) { m.store(v[0], at) },
		canon:   same,
	}
}

// A typ is a data type. sameAs names the type whose functions serve for this one too, where signs make no difference.
type typ struct {
	name, sameAs      string
	lanes, selections *lanes
	ops               []op
}

// An op writes the instructions for v = a ⊕ b.
type op struct {
	name   string
	kind   string // of a reduction, without "Kind"; "" for scaled loops
	field  string // of vectors that lists scaled loops; "" for reductions
	shared string // replaces the type in the function's name
	emit   func(m *machine, l *lanes, a, b vec) vec
}

var (
	arithmetic = []op{
		{name: "sum", kind: "Sum", emit: func(m *machine, l *lanes, a, b vec) vec { return l.canon(m, l.add(m, a, b)) }},
		{name: "prod", kind: "Prod", emit: func(m *machine, l *lanes, a, b vec) vec { return l.canon(m, l.mul(m, a, b)) }},
		{name: "max", kind: "Max", emit: func(m *machine, l *lanes, a, b vec) vec { return l.max(m, a, b) }},
		{name: "min", kind: "Min", emit: func(m *machine, l *lanes, a, b vec) vec { return l.min(m, a, b) }},
	}
	bitwise = []op{
		{name: "and", kind: "BitAnd", shared: "Bytes", emit: func(m *machine, _ *lanes, a, b vec) vec { return m.and(a, b) }},
		{name: "or", kind: "BitOr", shared: "Bytes", emit: func(m *machine, _ *lanes, a, b vec) vec { return m.or(a, b) }},
		{name: "xor", kind: "BitXor", shared: "Bytes", emit: func(m *machine, _ *lanes, a, b vec) vec { return m.xor(a, b) }},
	}
	scaled = []op{
		{name: "addScaled", field: "combineIn", emit: addScaled},
		{name: "scale", field: "load", emit: scale},
	}
	all = append(append([]op{}, arithmetic...), bitwise...)
)

func addScaled(m *machine, l *lanes, a, b vec) vec {
	v := l.mul(m, b, m.get("s"))
	if l.round != nil {
		v = l.round(m, v)
	}
	return l.canon(m, l.add(m, a, v))
}

func scale(m *machine, l *lanes, _, b vec) vec {
	return l.canon(m, l.mul(m, b, m.get("s")))
}

var types = []typ{
	{name: "Int8", lanes: integers(8, true), ops: all},
	{name: "Uint8", sameAs: "Int8", lanes: integers(8, false), ops: all},
	{name: "Int32", lanes: integers(32, true), ops: all},
	{name: "Uint32", sameAs: "Int32", lanes: integers(32, false), ops: all},
	{name: "Int64", lanes: integers(64, true), ops: all},
	{name: "Uint64", sameAs: "Int64", lanes: integers(64, false), ops: all},
	{name: "Float16", lanes: float16s(), selections: selections(16, 0x7c00), ops: arithmetic},
	{name: "Float32", lanes: floats(32, 0x7fffffff), ops: arithmetic},
	{name: "Float64", lanes: floats(64, 0x7fffffffffffffff), ops: arithmetic},
	{name: "BFloat16", lanes: bfloat16s(), selections: selections(16, 0x7f80), ops: arithmetic},
	{name: "Float8E4M3", lanes: float8s(true), selections: selections(8, 0x7e), ops: arithmetic},
	{name: "Float8E5M2", lanes: float8s(false), selections: selections(8, 0x7c), ops: arithmetic},
}
