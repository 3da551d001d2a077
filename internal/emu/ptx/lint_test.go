package ptx

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/must"
)

// problems lints and gives texts without those of warnings, unless asked for.
func problems(t *testing.T, text string, r Rules, warnings bool) (list []string) {
	m := must.Get(Parse("k.ptx", []byte(text)))
	for _, p := range Lint(m, r) {
		if warnings || !p.Warning {
			list = append(list, p.String())
		}
	}
	return list
}

func TestLintNeeds(t *testing.T) {
	for _, c := range []struct {
		version, target, text string
		want                  string // "" for none
	}{
		{"7.0", "sm_70", "redux.sync.add.u32 %r1, %r2, -1;", "line 16: k: redux.sync.add.u32 needs sm_80, .target is sm_70"},
		{"7.0", "sm_80", "redux.sync.add.u32 %r1, %r2, -1;", ""},
		{"6.2", "sm_70", "nanosleep.u32 100;", "nanosleep.u32 needs PTX 6.3, .version is 6.2"},
		{"7.0", "sm_70", "cvt.rn.bf16x2.f32 %r1, %f1, %f2;", "needs sm_80"},
		{"7.8", "sm_86", "cvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, %f2;", "needs sm_89"},
		{"7.0", "sm_80", "cvt.rn.satfinite.f16x2.f32 %r1, %f1, %f2;", "needs PTX 8.1"},
		{"7.8", "sm_80", "add.rn.bf16x2 %r1, %r2, %r3;", "needs sm_90"},
		{"7.0", "sm_70", "add.f16x2 %r1, %r2, %r3;", ""},
		{"7.0", "sm_70", "fma.rn.relu.f16x2 %r1, %r2, %r3, %r4;", "needs sm_80"},
		{"7.0", "sm_70", "max.f16x2 %r1, %r2, %r3;", "needs sm_80"},
		{"7.0", "sm_70", "max.f32 %f1, %f2, %f3;", ""},
		{"7.0", "sm_70", "max.NaN.f32 %f1, %f2, %f3;", "needs sm_80"},
		{"7.3", "sm_70", "ld.global.L1::no_allocate.u32 %r1, [%rd1];", "needs PTX 7.4"},
		{"7.0", "sm_60", "ld.acquire.gpu.u32 %r1, [%rd1];", "needs sm_70"},
		{"7.8", "sm_90", "mov.u32 %r1, %cluster_ctarank;", ""},
		{"7.8", "sm_80", "mov.u32 %r1, %cluster_ctarank;", "%cluster_ctarank needs sm_90"},
		{"8.0", "sm_90", "setmaxnreg.inc.sync.aligned.u32 64;", "needs sm_90a"},
		{"8.0", "sm_90a", "setmaxnreg.inc.sync.aligned.u32 64;", ""},
		{"7.0", "sm_90", "ret;", ".target sm_90 needs PTX 7.8"},
		{"9.9", "sm_999", "ret;", ".target sm_999, which is not known here"},
	} {
		text := strings.Replace(in(c.text), "7.0\n.target sm_70", c.version+"\n.target "+c.target, 1)
		got := problems(t, text, Rules{}, false)
		name := fmt.Sprintf("%s %s %s: %v", c.version, c.target, c.text, got)
		if c.want == "" {
			require.Empty(t, got, name)
			continue
		}
		require.Len(t, got, 1, name)
		require.Contains(t, got[0], c.want, name)
	}
}

func TestLintRules(t *testing.T) {
	for _, c := range []struct {
		name, text string
		rules      Rules
		want       string
	}{
		{"right", "ret;", Rules{Entries: map[string]int{"k": 8}, Version: Version{7, 0}, Targets: []string{"sm_70"},
			AddressSize: 64}, ""},
		{"missing", "ret;", Rules{Entries: map[string]int{"k": 8, "other": 8}}, "kernel other is missing"},
		{"unexpected", "ret;", Rules{Entries: map[string]int{}}, "k: a kernel that is not expected"},
		{"parameters", "ret;", Rules{Entries: map[string]int{"k": 12}}, "k: 8 bytes of parameters, expected 12"},
		{"version", "ret;", Rules{Version: Version{6, 5}}, ".version 7.0, expected at most 6.5"},
		{"target", "ret;", Rules{Targets: []string{"sm_80", "sm_90"}}, ".target sm_70, expected one of [sm_80 sm_90]"},
		{"address size", "ret;", Rules{AddressSize: 32}, ".address_size 64, expected 32"},
		{"approximate", "div.approx.f32 %f1, %f2, %f3;", Rules{}, "line 16: k: div.approx.f32: .approx"},
		{"approximate allowed", "div.approx.f32 %f1, %f2, %f3;", Rules{Approx: true}, ""},
		{"exact", "div.rn.f32 %f1, %f2, %f3;", Rules{}, ""},
		{"flush", "add.ftz.f32 %f1, %f2, %f3;", Rules{}, ".ftz, expected exact arithmetic"},
		{"local", ".local .b8 a[16];", Rules{}, "16 bytes of local memory (a)"},
		{"local allowed", ".local .b8 a[16];", Rules{Local: true}, ""},
		{"spill", "st.local.u32 [%rd1], %r1;", Rules{}, "st.local.u32: local memory"},
		{"in-switch", "multimem.red.relaxed.sys.global.add.f32 [%rd1], %f1;", Rules{},
			"multicast between GPUs: not emulated"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := in(c.text)
			if c.name == "in-switch" {
				text = strings.Replace(text, "7.0\n.target sm_70", "8.1\n.target sm_90", 1)
			}
			got := problems(t, text, c.rules, false)
			if c.want == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1, got)
			require.Contains(t, got[0], c.want)
		})
	}
}

func TestLintWarnings(t *testing.T) {
	require.Equal(t, []string{"line 16: warning: k: ld.u32: a generic address, which costs a test of the space; " +
		"expected .global or .shared"},
		problems(t, in("ld.u32 %r1, [%rd1];"), Rules{}, true))
	require.Empty(t, problems(t, in("ld.global.u32 %r1, [%rd1];"), Rules{}, true))
}

func TestLintCalls(t *testing.T) {
	text := header + ".func f() { ret; }\n.visible .entry k() {\n call f;\n ret; }"
	require.Equal(t, []string{
		"line 4: f: a function to be called, expected all to be inlined",
		"line 6: k: a call of f, expected it to be inlined",
	}, problems(t, text, Rules{}, false))
	require.Empty(t, problems(t, text, Rules{Calls: true}, false))
	require.Equal(t, []string{"line 4: k: a kernel that is not .visible: it cannot be launched"},
		problems(t, header+".entry k() {}", Rules{Entries: map[string]int{"k": 0}}, false))
}

// TestLintFixtures: what clang makes for a target needs no more than it says.
func TestLintFixtures(t *testing.T) {
	for name, text := range fixtures(t) {
		require.Empty(t, problems(t, string(text), Rules{Approx: true, Local: true, Calls: true, AddressSize: 64}, false),
			name)
	}
}
