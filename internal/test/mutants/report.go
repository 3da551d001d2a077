package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"
)

// report writes the mutants that live, and the share of killed ones by package.
func report(w io.Writer, list []judgement, seed uint64, skip int) {
	type tally struct{ all, killed int }
	var whole tally
	var took time.Duration
	tallies, verdicts := map[string]*tally{}, map[verdict]int{}
	var living, unknown []judgement
	for _, x := range list {
		took += x.took
		verdicts[x.verdict]++
		if x.verdict == unjudged {
			unknown = append(unknown, x)
		}
		if !x.counts() {
			continue
		}
		t := tallies[x.pkg.folder()]
		if t == nil {
			t = new(tally)
			tallies[x.pkg.folder()] = t
		}
		t.all++
		whole.all++
		if x.verdict == lives {
			living = append(living, x)
		} else {
			t.killed++
			whole.killed++
		}
	}
	share := func(t tally) string { return fmt.Sprintf("%.0f %%", 100*float64(t.killed)/float64(max(1, t.all))) }
	slices.SortFunc(living, func(a, b judgement) int { return cmp.Or(cmp.Compare(a.file, b.file), a.line-b.line) })
	fmt.Fprintf(w, "Living:\n")
	for _, x := range living {
		fmt.Fprintf(w, "%v %s\n", x.mutant, x.why)
	}
	if len(unknown) > 0 {
		fmt.Fprintf(w, "\nNot judged:\n")
	}
	for _, x := range unknown {
		fmt.Fprintf(w, "%v: %s\n", x.mutant, x.why)
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "package\tmutants\tkilled\tliving\tshare\t\n")
	for _, folder := range slices.Sorted(maps.Keys(tallies)) {
		t := *tallies[folder]
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%s\t\n", folder, t.all, t.killed, t.all-t.killed, share(t))
	}
	fmt.Fprintf(table, "all\t%d\t%d\t%d\t%s\t\n", whole.all, whole.killed, whole.all-whole.killed, share(whole))
	table.Flush()
	done := slices.IndexFunc(list, func(x judgement) bool { return x.verdict == stopped })
	if done < 0 {
		done = len(list)
	}
	fmt.Fprintf(w, "\nmutants %d to %d of seed %d; more of it with -skip %d\n", skip+1, skip+done, seed, skip+done)
	fmt.Fprintf(w, "%d killed, %d of these by the limit; beside them %d did not build, %d were the same code, %d were "+
		"not judged; %.1f s each on average\n",
		whole.killed, verdicts[hung], verdicts[unbuilt], verdicts[same], verdicts[unjudged],
		took.Seconds()/float64(max(1, whole.all)))
}
