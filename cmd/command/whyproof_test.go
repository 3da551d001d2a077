package command

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/hangs"
	"github.com/ringo-go/ringo/internal/test/tier"
)

var whySeed = flag.Uint64("why-seed", 0, "of the scenarios of TestWhyProof")

var rewrite = flag.Bool("rewrite", false, "write the table of scenarios and the answers in docs/why.md anew")

// A verdict is the grade of an answer.
type verdict int

const (
	right verdict = iota
	unknown
	wrong
)

// asked is the first answer of ringo why to a scenario's files; not ok if there are no files or no answer.
func asked(t *testing.T, s *hangs.Scenario, what hangs.What) (a whyAnswer, ok bool) {
	dir := t.TempDir()
	require.NoError(t, s.Write(dir, what))
	if list, err := os.ReadDir(dir); err != nil || len(list) == 0 {
		return a, false
	}
	var out, errs strings.Builder
	ringoMain(t.Context(), []string{"why", "-json", dir}, &out, &errs)
	var all []whyAnswer
	if json.Unmarshal([]byte(out.String()), &all) != nil || len(all) == 0 {
		return whyAnswer{Reason: "unknown", Sentence: errs.String()}, true
	}
	if len(all) > 1 {
		return whyAnswer{Reason: "several", Sentence: out.String(), Culprits: all[0].Culprits}, true
	}
	return all[0], true
}

// judged compares an answer with the right one. Unless whole, an answer that names the right ranks for another reason
// is right too: only a log can tell, for example, that a rank was killed and is not just silent.
func judged(s *hangs.Scenario, a *whyAnswer, whole bool) verdict {
	for _, r := range a.Culprits {
		if !slices.Contains(s.Fault, r) {
			return wrong
		}
	}
	named := slices.Equal(a.Culprits, list(s.Blame))
	text := a.Sentence + "\n" + strings.Join(a.Notes, "\n")
	switch {
	case named && a.Reason == s.Reason &&
		(!whole || strings.Contains(a.Sentence, s.Says) && strings.Contains(text, s.Note)):
		return right
	case !whole && named && len(s.Blame) > 0:
		return right
	}
	return unknown
}

// Generated hangs, as dumps, answers of RAS, logs and stacks, alone and together. No answer accuses a rank that is not
// at fault.
func TestWhyProof(t *testing.T) {
	every := tier.Full() && !tier.Race || *rewrite // CI runs this test without the race detector too
	sources := []struct {
		name string
		what hangs.What
	}{{"dumps", hangs.Dumps}, {"RAS", hangs.RAS}, {"logs", hangs.Logs}, {"all", hangs.Everything}}
	type result struct {
		s   *hangs.Scenario
		got [4]verdict
	}
	var results []*result
	t.Run("scenarios", func(t *testing.T) {
		for i, s := range hangs.All(*whySeed) {
			if v := i % hangs.PerKind; !every && (v > 1 || v > 0 && testing.Short()) {
				continue
			}
			one := &result{s: s}
			results = append(results, one)
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				for k, source := range sources {
					a, ok := asked(t, s, source.what)
					v := unknown
					if ok {
						v = judged(s, &a, k == 3)
					}
					if one.got[k] = v; v == wrong || k == 3 && v == unknown {
						t.Logf("by %s: %s of %v is %q of %v: %s %q", source.name, s.Reason, s.Blame, a.Reason, a.Culprits,
							a.Sentence, a.Notes)
					}
				}
			})
		}
	})
	var kinds []string
	counts := map[string]*[4][3]int{}
	total := [4][3]int{}
	for _, r := range results {
		if counts[r.s.Kind] == nil {
			kinds, counts[r.s.Kind] = append(kinds, r.s.Kind), new([4][3]int)
		}
		for k, v := range r.got {
			counts[r.s.Kind][k][v]++
			total[k][v]++
		}
	}
	all := total[3][0] + total[3][1] + total[3][2]
	require.GreaterOrEqual(t, 100*total[3][right], 95*all, "of %d scenarios so many are right", all)
	for k, source := range sources {
		require.Zero(t, total[k][wrong], "accusations by %s alone", source.name)
	}
	var table strings.Builder
	table.WriteString("| scenario | all files | dumps alone | RAS alone | logs alone |\n|---|---|---|---|---|\n")
	row := func(name string, c *[4][3]int) {
		fmt.Fprintf(&table, "| %s", name)
		for _, k := range []int{3, 0, 1, 2} {
			fmt.Fprintf(&table, " | %d / %d / %d", c[k][right], c[k][unknown], c[k][wrong])
		}
		table.WriteString(" |\n")
	}
	for _, k := range kinds {
		row(k, counts[k])
	}
	row("**all**", &total)
	t.Log("right / unknown / wrong\n" + table.String())
	if every && *whySeed == 0 || *rewrite {
		region(t, "scenarios", table.String())
	}
}

// region checks that a part of docs/why.md is want, or writes it with -rewrite.
func region(t *testing.T, name, want string) {
	const file = "../../docs/why.md"
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
	before, rest, ok := strings.Cut(string(b), begin)
	was, after, ok2 := strings.Cut(rest, end)
	require.True(t, ok && ok2, "%s has no region %s", file, name)
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(before+begin+want+end+after), 0o644))
		return
	}
	require.Equal(t, want, was, "go test ./cmd/command -run WhyProof -rewrite writes it anew")
}

// Ringo why prints the answers that docs/why.md shows.
func TestWhyProofAnswers(t *testing.T) {
	shown := []string{
		"asleep in the data loader", "leaves a call out", "another size", "groups in another order",
		"killed, memory was short", "exception", "a kernel spins", "watchdog too short",
		"the network", "one rank's dump alone",
	}
	var text strings.Builder
	all := hangs.All(0)
	for i, kind := range shown {
		k := slices.IndexFunc(all, func(s *hangs.Scenario) bool { return s.Kind == kind })
		s := all[k+1]
		dir := t.TempDir()
		require.NoError(t, s.Write(dir, hangs.Everything))
		var out, errs strings.Builder
		code := ringoMain(t.Context(), []string{"why", dir}, &out, &errs)
		fmt.Fprintf(&text, "%d. %s\n\n```\n%s```\n\nExit status %d.\n\n", i+1, s.Name, out.String(), code)
	}
	region(t, "answers", text.String())
}
