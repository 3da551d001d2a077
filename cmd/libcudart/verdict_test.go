//go:build linux && (amd64 || arm64)

package libcudart

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/ctest"
	"github.com/ringo-go/ringo/internal/test/must"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// The more seeds, the surer that no right program is accused.
var seeds = flag.Int("verdict.seeds", 3, "under how many seeds TestVerdicts runs each program")

// verdict is what ringo emulate says of a program: the kinds of its findings, and whether the program complained.
type verdict struct {
	status int
	text   string
	kinds  string
	wrong  bool
}

var (
	caseLine = regexp.MustCompile(`(?m)^// CASE (\w+): (.*)$`)
	optLine  = regexp.MustCompile(`(?m)^// (FLAGS|EMULATE) (.*)$`)
	lastLine = regexp.MustCompile(`(?m)^\d+ findings?: (.*)$`)
	oneKind  = regexp.MustCompile(`\d+ × `)
)

// TestVerdicts runs the programs of testdata/verdict, whose first lines name their cases and what is to be said of
// each:
//
//	none              nothing is found, and the program is satisfied
//	race, leak        findings of these kinds and no others, under every seed
//	some race         the same under one seed at least
//	some wrong        the program gets a wrong result under one seed at least, and nothing is found
//	prints TEXT       nothing fails, and TEXT is printed
//	fails TEXT        the run fails, and TEXT is printed
func TestVerdicts(t *testing.T) {
	tier.Heavy(t)
	files := must.Get(filepath.Glob(filepath.Join("testdata", "verdict", "*.cu")))
	require.NotEmpty(t, files)
	for _, file := range files {
		source := must.Get(os.ReadFile(file))
		options, args := []string{"-O2"}, []string{"-g", "2"}
		for _, o := range optLine.FindAllStringSubmatch(string(source), -1) {
			if o[1] == "FLAGS" {
				options = append(options, strings.Fields(o[2])...)
			} else {
				args = strings.Fields(o[2])
			}
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".cu"), func(t *testing.T) {
			program := ctest.CUDA(t, file, options...)
			cases := caseLine.FindAllStringSubmatch(string(source), -1)
			require.NotEmpty(t, cases)
			for _, c := range cases {
				t.Run(c[1], func(t *testing.T) {
					var all []verdict
					for seed := range *seeds {
						all = append(all, judge(t, append(append(args, "-seed", fmt.Sprint(seed+1), "--"), program, c[1])...))
					}
					compare(t, c[2], all)
				})
			}
		})
	}
}

// TestKinds wants each kind of finding to be in docs/emulate.md and in a program of testdata/verdict.
func TestKinds(t *testing.T) {
	kinds := []string{"failed call", "refused", "failed communicator", "leak"}
	for k := range weakmem.FaultKinds {
		kinds = append(kinds, k.String())
	}
	page := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "emulate.md")))
	files := must.Get(filepath.Glob(filepath.Join("testdata", "verdict", "*.cu")))
	var cases string
	for _, file := range files {
		source := must.Get(os.ReadFile(file))
		for _, c := range caseLine.FindAllStringSubmatch(string(source), -1) {
			cases += c[2] + "\n"
		}
	}
	for _, kind := range kinds {
		require.Contains(t, string(page), "`"+kind+"`")
		require.Regexp(t, "(?m)^"+kind+"$", cases)
	}
}

// judge runs a program once.
func judge(t *testing.T, args ...string) verdict {
	t.Helper()
	v := verdict{kinds: "none"}
	v.status, v.text = emulate(t, args...)
	if m := lastLine.FindStringSubmatch(v.text); m != nil {
		v.kinds = oneKind.ReplaceAllString(m[1], "")
	}
	v.wrong = strings.Contains(v.text, "WRONG")
	return v
}

// compare wants the verdicts under all seeds to be those of a program's first lines.
func compare(t *testing.T, want string, all []verdict) {
	t.Helper()
	how, what, _ := strings.Cut(want, " ")
	seen := 0
	for i, v := range all {
		shown := fmt.Sprintf("seed %d, wanted %s:\n%s", i+1, want, v.text)
		switch {
		case how == "prints":
			require.Zero(t, v.status, shown)
			require.Contains(t, v.text, what, shown)
		case how == "fails":
			require.NotZero(t, v.status, shown)
			require.Contains(t, v.text, what, shown)
		case want == "none":
			require.False(t, v.wrong, shown)
			require.Zero(t, v.status, shown)
			require.Contains(t, v.text, "nothing was found", shown)
		case want == "some wrong":
			require.Equal(t, "none", v.kinds, shown)
			if v.wrong {
				seen++
			}
		case how == "some":
			if v.kinds != "none" {
				require.Equal(t, what, v.kinds, shown)
				seen++
			}
		default:
			require.Equal(t, want, v.kinds, shown)
		}
	}
	// Few seeds need not meet what some do.
	if how == "some" && len(all) >= 20 {
		require.NotZero(t, seen, "wanted %s, under none of %d seeds", want, len(all))
	}
}
