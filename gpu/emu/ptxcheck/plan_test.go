package ptxcheck

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/must"
)

// structs is a kernel with parameters of all kinds, a variable, and one that holds its address.
const structs = `.version 7.0
.target sm_70
.address_size 64
.global .align 4 .u32 there = 7;
.global .align 8 .u64 here = there;
.visible .entry k(.param .u64 x, .param .align 8 .b8 s[24], .param .f32 f, .param .u8 b) { ret; }
`

func caseOf(change func(*Case)) Case {
	c := Case{Name: "k.ptx", Text: []byte(structs), GPUs: 2, Seeds: 1, Buffers: []string{"x=f32[4]"},
		Launches: []Launch{{Args: []string{"x", "{x}", "0", "0"}}}}
	if change != nil {
		change(&c)
	}
	return c
}

// Mistakes in a case, in words.
func TestWrongCases(t *testing.T) {
	arg := func(i int, text string) func(*Case) { return func(c *Case) { c.Launches[0].Args[i] = text } }
	buffer := func(text string) func(*Case) { return func(c *Case) { c.Buffers = append(c.Buffers, text) } }
	want := func(text string) func(*Case) { return func(c *Case) { c.Wants = []string{text} } }
	launch := func(f func(*Launch)) func(*Case) { return func(c *Case) { f(&c.Launches[0]) } }
	const form = ": want NAME=TYPE[COUNT] or NAME=TYPE[COUNT]:CONTENTS, such as x=f32[256]:i"
	const types = "use b16, b32, b64, b8, bf16, e4m3, e5m2, f16, f32, f64, ptr, s16, s32, s64, s8, u16, u32, u64, u8"
	const x, s = "argument 1 of kernel k (.u64 x): ", "argument 2 of kernel k (.b8 s): "
	for says, change := range map[string]func(*Case){
		"GPUs: 17: want 1 to 16":                     func(c *Case) { c.GPUs = 17 },
		"GPUs: -1: want 1 to 16":                     func(c *Case) { c.GPUs = -1 },
		"multiprocessors: 1025: want 1 to 1024":      func(c *Case) { c.SMs = 1025 },
		"multiprocessors: -1: want 1 to 1024":        func(c *Case) { c.SMs = -1 },
		"seeds: -1: want at least 1":                 func(c *Case) { c.Seeds = -1 },
		`link: "rail": want nvlink, pcie or none`:    func(c *Case) { c.Link = "rail" },
		"launches: none: say which kernel to launch": func(c *Case) { c.Launches = nil },
		"k.ptx: it has no kernel (.entry)": func(c *Case) {
			c.Text = []byte(".version 7.0\n.target sm_70\n.address_size 64\n")
		},
		"k.ptx: say which kernel: it has k, l": func(c *Case) {
			c.Text = append(c.Text, "\n.visible .entry l() { ret; }\n"...)
		},
		"kernel m: k.ptx has none of this name; it has k":                                        launch(func(l *Launch) { l.Kernel = "m" }),
		"kernel k: grid [65537 1 1] of blocks [1 0 0]: extents are 1 to 65,536":                  launch(func(l *Launch) { l.Grid, l.Block = [3]int{1<<16 + 1, 1, 1}, [3]int{1, 0, 0} }),
		"kernel k: grid [1 1 1] of blocks [1 1 -2]: extents are 1 to 65,536":                     launch(func(l *Launch) { l.Block[2] = -2 }),
		"kernel k: 1048577 blocks: at most 1,048,576":                                            launch(func(l *Launch) { l.Grid = [3]int{61681, 17, 1} }),
		"kernel k: -1 bytes of shared memory":                                                    launch(func(l *Launch) { l.Shared = -1 }),
		"kernel k: GPU 2: GPUs are 0 to 1":                                                       launch(func(l *Launch) { l.On = []int{0, 2} }),
		"kernel k: GPU -1: GPUs are 0 to 1":                                                      launch(func(l *Launch) { l.On = []int{-1} }),
		"kernel k: 1 arguments, want 4: k(.u64 x, .b8 s[24], .f32 f, .u8 b)":                     launch(func(l *Launch) { l.Args = l.Args[:1] }),
		x + `"{x": { without its }`:                                                              arg(0, "{x"),
		x + `unknown type "q32": ` + types:                                                       arg(0, "q32:1"),
		s + `"x": the parameter has 24 bytes: write its fields in braces, such as {x, y, u32:7}`: arg(1, "x"),
		s + "the fields have more than the 24 bytes of the parameter":                            arg(1, "{x, x, x, u8:1}"),
		s + `"7": say its type, such as u32:7`:                                                   arg(1, "{7}"),
		s + `unknown type "q": ` + types:                                                         arg(1, "{q:7}"),
		s + `"z" is no buffer: there are x, there, here`:                                         arg(1, "{z@*}"),
		s + `expression "z": "z" is no buffer: there are x, there, here`:                         arg(1, "{z}"),
		"argument 4 of kernel k (.u8 b): 256 does not fit into 8 bits":                           arg(3, "256"),
		"argument 4 of kernel k (.u8 b): -129 does not fit into 8 bits":                          arg(3, "-129"),
		"argument 4 of kernel k (.u8 b): 128 does not fit into 8 bits":                           arg(3, "s8:128"),
		"argument 4 of kernel k (.u8 b): 1.5 is no whole number":                                 arg(3, "1.5"),
		"argument 3 of kernel k (.f32 f): an address has 8 bytes, and this is another type":      arg(2, "x"),
		x + "want an address: the name of a buffer, or 0":                                        arg(0, "ptr:1"),
		"buffer y" + form:         buffer("y"),
		"buffer y=f32" + form:     buffer("y=f32"),
		"buffer y=f32[1" + form:   buffer("y=f32[1"),
		"buffer y=f32[1]x" + form: buffer("y=f32[1]x"),
		"buffer y=f32[1]:" + form: buffer("y=f32[1]:"),
		`buffer 1y=f32[1]: "1y" is no name: want letters, digits and _`:                              buffer("1y=f32[1]"),
		`buffer y-=f32[1]: "y-" is no name: want letters, digits and _`:                              buffer("y-=f32[1]"),
		`buffer rank=f32[1]: a buffer cannot be called "rank"`:                                       buffer("rank=f32[1]"),
		`buffer =f32[1]: a buffer cannot be called ""`:                                               buffer("=f32[1]"),
		"buffer x=f32[1]: there is a buffer x already":                                               buffer("x=f32[1]"),
		`buffer y=q[1]: unknown type "q": ` + types:                                                  buffer("y=q[1]"),
		"buffer y=u8[0]: 0 elements: want at least 1, and at most 64 MiB in all":                     buffer("y=u8[0]"),
		"buffer y=u8[1.5]: 1.5 elements: want at least 1, and at most 64 MiB in all":                 buffer("y=u8[1.5]"),
		"buffer y=u8[67108849]: 6.7108849e+07 elements: want at least 1, and at most 64 MiB in all":  buffer("y=u8[67108849]"),
		"buffer there: the text has a variable of this name, which is there without being asked for": buffer("there=u32[1]"),
		"buffer y=s8[3]:100*i: element 2: 200 does not fit into 8 bits":                              buffer("y=s8[3]:100*i"),
		"want x: want NAME=CONTENTS or NAME@GPU=CONTENTS, such as x=2*i":                             want("x"),
		"want x=: want NAME=CONTENTS or NAME@GPU=CONTENTS, such as x=2*i":                            want("x="),
		"want x@2=1: GPUs are 0 to 1":                                                                want("x@2=1"),
		"want x@0-1=1: GPUs are 0 to 1":                                                              want("x@0-1=1"),
		"want x@0.5=1: GPUs are 0 to 1":                                                              want("x@0.5=1"),
		`want z=1: "z" is no buffer: there are x, there, here`:                                       want("z=1"),
		"want there=1.5: element 0: 1.5 is no whole number":                                          want("there=1.5"),
	} {
		c := caseOf(change)
		r, err := Run(context.Background(), c)
		require.EqualError(t, err, says)
		require.Nil(t, r)
		var wrong *Error
		require.ErrorAs(t, err, &wrong)
		require.NotEmpty(t, wrong.What)
		require.Error(t, wrong.Unwrap())
	}
	c := caseOf(func(c *Case) { c.Text = []byte("nonsense") })
	require.ErrorContains(t, must.Err(Run(context.Background(), c)), "the text: ")
}

// TestPlan: a case gets its defaults, memory, arguments and launches.
func TestPlan(t *testing.T) {
	p, err := newPlan(Case{Text: []byte(structs), Launches: []Launch{{Args: []string{"0", "{}", "0", "0"}}}})
	require.ErrorContains(t, err, "expression", "there are no fields in {}")
	require.Nil(t, p)
	p, err = newPlan(caseOf(func(c *Case) {
		c.Seeds = 0
		c.Buffers = []string{"x=f32[4]:i*rank", "y=u8[3]:1,-1,255", "z=ptr[2]:x@0,x@1", "n=s16[2]"}
		c.Launches = []Launch{{Args: []string{"x", "{u8:1, x@*}", "1.5", "u8:3"}, Grid: [3]int{2, 0, 3},
			Block: [3]int{0, 5, 0}, On: []int{1}}, {Args: []string{"y@0", "{s16:-2, u32:7, f64:0.5}", "b32:1", "-1"}}}
		c.Wants = []string{"x@1=5", "y=2"}
	}))
	require.NoError(t, err)
	require.Equal(t, []any{2, 8, 100, "nvlink", uint64(20_000_000), 30 + 1},
		[]any{p.GPUs, p.SMs, p.Seeds, p.Link, p.Instructions, p.threads})
	address := func(name string, gpu int) uint64 {
		a := must.Get(p.address(name, gpu))
		return a
	}
	require.Equal(t, base, address("x", 0))
	require.Equal(t, base+perGPU, address("x", 1))
	require.GreaterOrEqual(t, address("y", 0), base+16+gap)
	require.Zero(t, address("y", 0)%512)
	bytesOf := func(addr uint64) (b []byte) {
		for i := range 8 {
			b = append(b, byte(addr>>(8*i)))
		}
		return b
	}
	float := func(f float32) []byte { return bytesOf(uint64(math.Float32bits(f)))[:4] }
	require.Equal(t, append(append(float(0), float(1)...), append(float(2), float(3)...)...), p.find("x", 1).data)
	require.Equal(t, []byte{1, 255, 255}, p.find("y", 0).data)
	require.Equal(t, append(bytesOf(base), bytesOf(base+perGPU)...), p.find("z", 1).data)
	require.Nil(t, p.find("n", 0).data)
	require.Equal(t, []byte{7, 0, 0, 0}, p.find("there", 0).data)
	require.Equal(t, bytesOf(address("there", 1)), p.find("here", 1).data)

	require.Len(t, p.launches[0], 1)
	require.Len(t, p.launches[1], 2)
	g := p.launches[1][0]
	require.Equal(t, [][3]int{{2, 1, 3}, {1, 5, 1}}, [][3]int{g.Dim, g.Block})
	params := g.Kernel.Func.Params
	part := func(args []byte, i int) []byte { return args[params[i].Offset : params[i].Offset+params[i].Size()] }
	require.Equal(t, bytesOf(address("x", 1)), part(g.Args, 0))
	require.Equal(t, append([]byte{1, 0, 0, 0, 0, 0, 0, 0}, append(bytesOf(base), bytesOf(base+perGPU)...)...),
		part(g.Args, 1))
	require.Equal(t, float(1.5), part(g.Args, 2))
	require.Equal(t, []byte{3}, part(g.Args, 3))
	second := p.launches[1][1].Args
	require.Equal(t, bytesOf(address("y", 0)), part(second, 0))
	require.Equal(t, append([]byte{254, 255, 0, 0, 7, 0, 0, 0},
		append(bytesOf(math.Float64bits(0.5)), make([]byte, 8)...)...), part(second, 1))
	require.Equal(t, []byte{1, 0, 0, 0}, part(second, 2))
	require.Equal(t, []byte{255}, part(second, 3))

	require.Len(t, p.wants, 3)
	require.Equal(t, []any{"x", 1, "y", 0, "y", 1},
		[]any{p.wants[0].memory.name, p.wants[0].memory.gpu, p.wants[1].memory.name, p.wants[1].memory.gpu,
			p.wants[2].memory.name, p.wants[2].memory.gpu})
	require.Equal(t, []byte{2, 2, 2}, p.wants[1].data)
	first, n := p.wants[1].differs([]byte{2, 3, 4})
	require.Equal(t, []int{1, 2}, []int{first, n})
	first, n = p.wants[1].differs([]byte{2, 2, 2})
	require.Equal(t, []int{0, 0}, []int{first, n})
}

// Elements as bytes, and as text.
func TestElements(t *testing.T) {
	for _, c := range []struct{ kind, value, text string }{
		{"u8", "255", "255"}, {"u8", "-1", "255"}, {"s8", "-128", "-128"}, {"s8", "127", "127"}, {"b8", "200", "200"},
		{"u16", "65535", "65535"}, {"s16", "-2", "-2"}, {"s32", "-2147483648", "-2147483648"},
		{"u32", "4294967295", "4294967295"},
		{"s64", "-1", "-1"}, {"u64", "-1", "18446744073709551615"}, {"f32", "0.1", "0.1"}, {"f32", "3", "3"},
		{"f64", "0.1", "0.1"}, {"f64", "-inf", "-Inf"},
		{"f16", "0.1", "0.099975586"}, {"f16", "inf", "+Inf"}, {"bf16", "0.1", "0.100097656"}, {"e4m3", "0.1", "0.1015625"},
		{"e5m2", "0.1", "0.09375"}, {"f32", "nan", "NaN"},
		{"ptr", "x", "0x1234"}, {"ptr", "0", "0x0"}, {"u64", "x", "4660"},
	} {
		k := must.Get(kindNamed(c.kind))
		b, err := k.contents(2, c.value, scope{gpus: 1, buffer: func(string, int) (uint64, error) { return 0x1234, nil }})
		require.NoError(t, err, c.value)
		require.Len(t, b, 2*k.size)
		require.Equal(t, c.text, k.text(b[k.size:]), "%s of %s", c.kind, c.value)
	}
	require.Equal(t, []string{"a", "(b,c)", "f((d,e),g)", ""}, split("a,(b,c),f((d,e),g),"))
	for _, c := range []struct {
		a, b string
		same bool
	}{{"0", "-0", true}, {"NaN", "NaN", true}, {"0", "NaN", false}, {"1", "1", false}, {"-0", "0", true},
		{"1", "NaN", false}} {
		require.Equal(t, c.same, same(c.a, c.b), c)
	}
}

// A schedule is shorter if it has fewer turns, or as many and fewer steps; one is shorter than none.
func TestShorter(t *testing.T) {
	a, b := &Schedule{Turns: make([]Turn, 1), Steps: 9}, &Schedule{Turns: make([]Turn, 2), Steps: 1}
	c := &Schedule{Turns: make([]Turn, 2), Steps: 2}
	require.True(t, a.shorter(b) && b.shorter(c) && a.shorter(nil))
	require.False(t, b.shorter(a) || c.shorter(b) || b.shorter(b) || (*Schedule)(nil).shorter(a) ||
		(*Schedule)(nil).shorter(nil))
}

// TestProgress: Case.Progress is called after each seed.
func TestProgress(t *testing.T) {
	var seen []int
	r := check(t, caseOf(func(c *Case) {
		c.Seeds = 3
		c.Progress = func(n int) { seen = append(seen, n) }
	}))
	require.Equal(t, []int{1, 2, 3}, seen)
	require.Equal(t, 3, r.Ran)
}
