package ptx

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/must"
)

func parseFixture(t *testing.T, name string) *Module {
	text := must.Get(os.ReadFile("testdata/" + name + ".ptx"))
	m := must.Get(Parse(name, text))
	return m
}

func TestParameters(t *testing.T) {
	f := parseFixture(t, "loops").Func("sum")
	require.True(t, f.Entry)
	require.Equal(t, "visible", f.Linkage)
	require.Equal(t, []Var{
		{Name: "sum_param_0", Space: Param, Type: B8, Align: 8, Count: 40, Offset: 0},
		{Name: "sum_param_1", Space: Param, Type: U64, Align: 8, Count: 1, Offset: 40},
		{Name: "sum_param_2", Space: Param, Type: U64, Align: 8, Count: 1, Offset: 48},
	}, f.Params)
	require.Equal(t, 56, f.ParamBytes)
	require.Equal(t, Dim{256, 1, 1}, f.MaxThreads)
	require.Equal(t, 2, f.MinBlocks)
}

func TestVariables(t *testing.T) {
	m := parseFixture(t, "control")
	vars := map[string]Var{}
	for _, v := range m.Vars {
		vars[v.Name] = v
	}
	require.Equal(t, Var{Name: "table", Space: Const, Type: B8, Align: 4, Count: 20, Linkage: "visible",
		Init: []byte{1, 0, 0, 0, 254, 255, 255, 255, 44, 1}}, vars["table"])
	require.Equal(t, []byte{0, 0, 0, 0, 0, 0, 0xf8, 0x3f}, vars["scale"].Init)
	require.Nil(t, vars["counter"].Init)
	require.Equal(t, []Reloc{{Name: "counter", Generic: true}}, vars["pointer"].Relocs)
	require.Equal(t, 64, m.Func("stack").LocalBytes)
	require.Equal(t, 1024, parseFixture(t, "loops").Func("block_sum").SharedBytes)
}

func TestExternShared(t *testing.T) {
	m := parseFixture(t, "loops")
	require.Equal(t, []Var{{Name: "dynamic", Space: Shared, Type: B8, Align: 1, Extern: true, Linkage: "extern"}}, m.Vars)
}

func TestInstruction(t *testing.T) {
	f := parseFixture(t, "memory").Func("accesses")
	var in *Instr
	for i := range f.Body {
		if f.Body[i].Name() == "ld.acquire.gpu.global.u64" {
			in = &f.Body[i]
		}
	}
	require.NotNil(t, in)
	require.Equal(t, "ld", in.Op)
	require.Equal(t, []Type{U64}, in.Types)
	require.Equal(t, Global, in.Space)
	require.Equal(t, 1, in.Vec)
	require.Equal(t, -1, in.Guard)
	require.True(t, in.Has("acquire"))
	require.Equal(t, AddrOperand, in.Operands[1].Kind)
	require.Equal(t, int64(-8), int64(in.Operands[1].Imm))
	require.Equal(t, "ld.acquire.gpu.global.u64 %rd5, [%rd6+-8]", in.Text)
}

// TestGuards prints the guards of the first register and of another one.
func TestGuards(t *testing.T) {
	m, err := Parse("guards", []byte(`.version 7.0
.target sm_70
.address_size 64
.entry k() {
	.reg .pred %p, %q;
	@%p ret;
	@!%p ret;
	@%q ret;
	ret;
}
`))
	require.NoError(t, err)
	text := m.String()
	for _, line := range []string{"@%p ret;", "@!%p ret;", "@%q ret;"} {
		require.Contains(t, text, line)
	}
	roundTrip(t, m)
}

// TestBlocks has names of blocks within blocks that hide those outside.
func TestBlocks(t *testing.T) {
	m, err := Parse("blocks", []byte(header+`
.global .u32 v;
.entry k() {
	.reg .b32 a, b;
	.reg .pred p;
	{
		.reg .b32 a, v;
		.reg .pred p;
	again:
		add.u32 a, b, v;
		setp.eq.u32 p, a, 0;
		@p bra again;
		bra out;
	}
	{
		.reg .b32 a;
	again:
		mov.u32 a, b;
		{ bra again; }
	}
out:
	ld.global.u32 a, [v];
	ret;
}`))
	require.NoError(t, err)
	require.Equal(t, `.version 7.0
.target sm_70
.address_size 64
.global .u32 v;

.entry k()
{
	.reg .b32 a;
	.reg .b32 b;
	.reg .pred p;
	.reg .b32 a$1;
	.reg .b32 v$1;
	.reg .pred p$1;
	.reg .b32 a$2;
again:
	add.u32 a$1, b, v$1;
	setp.eq.u32 p$1, a$1, 0;
	@p$1 bra again;
	bra out;
again$1:
	mov.u32 a$2, b;
	bra again$1;
out:
	ld.global.u32 a, [v];
	ret;
}
`, m.String())
	f := m.Func("k")
	require.Equal(t, map[string]int{"again": 0, "again$1": 4, "out": 6}, f.Labels)
	require.Equal(t, 0, f.Body[2].Operands[0].Target)
	require.Equal(t, 4, f.Body[5].Operands[0].Target)
	require.Equal(t, 6, f.Body[3].Operands[0].Target)
	roundTrip(t, m)
}

func TestBranchTable(t *testing.T) {
	m, err := Parse("table", []byte(header+`
.entry k() {
	.reg .b32 %r<2>;
	mov.u32 %r1, %tid.x;
$L_table: .branchtargets $L_a, $L_b,
	$L_a;
	brx.idx %r1, $L_table;
$L_a:
	exit;
$L_b:
}`))
	require.NoError(t, err)
	f := m.Func("k")
	require.Equal(t, map[string][]string{"$L_table": {"$L_a", "$L_b", "$L_a"}}, f.Tables)
	require.Equal(t, map[string]int{"$L_a": 2, "$L_b": 3}, f.Labels)
	require.Equal(t, NameOperand, f.Body[1].Operands[1].Kind)
	roundTrip(t, m)
}

func TestCall(t *testing.T) {
	f := parseFixture(t, "control").Func("calls")
	var call *Instr
	for i := range f.Body {
		if f.Body[i].Op == "call" {
			call = &f.Body[i]
		}
	}
	require.NotNil(t, call)
	require.Len(t, call.Operands, 3)
	require.Len(t, call.Operands[0].Elems, 1)
	require.Equal(t, "_Z5twist4Pairi", call.Operands[1].Name)
	require.Len(t, call.Operands[2].Elems, 2)
	require.Equal(t, 16+4+16, f.CallBytes-4) // two arguments and a result, which is aligned to 8
}

func TestDeclarations(t *testing.T) {
	m, err := Parse("k", []byte(header+`
.extern .func f(.param .u32 a);
.visible .entry k() { .param .b32 p; st.param.b32 [p], 1; call f, (p); ret; }
.visible .func f(.param .u32 a) { ret; }
.func f(.param .u32 a);
`))
	require.NoError(t, err)
	require.Len(t, m.Funcs, 4)
	require.Same(t, m.Funcs[2], m.Func("f"))
	require.Nil(t, m.Func("g"))
	require.True(t, m.Funcs[0].Declare)
	roundTrip(t, m)
}

// TestInitialisers compares bytes, and what is printed.
func TestInitialisers(t *testing.T) {
	for _, c := range []struct {
		text  string
		bytes []byte
		print string
	}{
		{".u8 x = 255", []byte{255}, ".u8 x = 255"},
		{".s8 x[3] = {-1, 2}", []byte{255, 2}, ".s8 x[3] = {255, 2}"},
		{".b16 x[] = {1, 0x1234, 0}", []byte{1, 0, 0x34, 0x12}, ".b16 x[3] = {1, 4660}"},
		{".s32 x = -2", []byte{0xfe, 0xff, 0xff, 0xff}, ".s32 x = 4294967294"},
		{".u64 x = WARP_SZ * 8", []byte{0, 1}, ".u64 x = 256"},
		{".f32 x[2] = {1.0, 0fC0000000}", []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}, ".f32 x[2] = {0f3F800000, 0fC0000000}"},
		{".f64 x = 0f3F800000", []byte{0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, ".f64 x = 0d3FF0000000000000"},
		{".align 16 .b128 x = -1", []byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255},
			".b128 x = -1"},
		{".u64 x[2] = {y+8, generic(y)}", make([]byte, 16), ".u64 x[2] = {y+8, generic(y)}"},
		{".b64 x[3] = {0, y + -4, 0}", make([]byte, 16), ".b64 x[3] = {0, y+-4}"},
		{".u32 x[4] = {0, 0, 0, 0}", nil, ".u32 x[4]"},
	} {
		m, err := Parse("k", []byte(header+".global .u32 y;\n.global "+c.text+";"))
		require.NoError(t, err, c.text)
		require.Equal(t, c.bytes, m.Vars[1].Init, c.text)
		require.Contains(t, m.String(), ".global "+c.print+";\n")
		roundTrip(t, m)
	}
}

func TestDirectives(t *testing.T) {
	m, err := Parse("k", []byte(`// a comment first
.version 8.0
.target sm_90a, debug
.visible .entry k(.param .u64 .ptr .global .align 16 a, .param .align 4 .b8 b[6], .param .u16 c)
.reqntid 64, 2
.maxnreg 40
.minnctapersm 3
{
	.pragma "nounroll", "other";
	ret;
}
.weak .func (.param .b64 r) f(.param .b32 a) .noreturn
{
	trap;
}
`))
	require.NoError(t, err)
	require.Equal(t, Version{8, 0}, m.Version)
	require.Equal(t, "sm_90a", m.Target)
	require.Equal(t, []string{"debug"}, m.Options)
	require.Equal(t, 32, m.AddressSize)
	k, f := m.Func("k"), m.Func("f")
	require.Equal(t, []int{0, 8, 14}, []int{k.Params[0].Offset, k.Params[1].Offset, k.Params[2].Offset})
	require.Equal(t, 16, k.ParamBytes)
	require.Equal(t, Dim{64, 2, 1}, k.ReqThreads)
	require.Equal(t, 40, k.MaxRegs)
	require.Equal(t, 3, k.MinBlocks)
	require.Equal(t, "weak", f.Linkage)
	require.Equal(t, 8, f.ResultBytes)
	roundTrip(t, m)
}

func TestTypes(t *testing.T) {
	require.Equal(t, []int{1, 8, 16, 128}, []int{Pred.Bits(), U8.Bits(), E4M3x2.Bits(), B128.Bits()})
	require.Equal(t, []string{"u32", "f16x2", "pred", ""},
		[]string{U32.String(), F16x2.String(), Pred.String(), NoType.String()})
	require.Equal(t, []string{"", "shared", "reg"}, []string{Generic.String(), Shared.String(), RegSpace.String()})
	require.True(t, S16.Signed() && S16.Integer() && U8.Integer() && BF16.Float())
	require.False(t, B32.Integer() || B32.Float() || U32.Signed() || Pred.Integer())
}

// What a kernel says of its clusters is kept.
func TestClusterDirectives(t *testing.T) {
	m, err := Parse("k.ptx", []byte(`.version 7.8
.target sm_90
.address_size 64
.entry a() .reqnctapercluster 2, 3 .explicitcluster { ret; }
.entry b() .maxclusterrank 4 .reqntid 32 { ret; }
`))
	require.NoError(t, err)
	roundTrip(t, m)
	a, b := m.Func("a"), m.Func("b")
	require.Equal(t, Dim{2, 3, 1}, a.ReqCluster)
	require.True(t, a.Explicit)
	require.Equal(t, 4, b.MaxCluster)
	require.False(t, b.Explicit)
	require.Equal(t, Dim{}, b.ReqCluster)
}
