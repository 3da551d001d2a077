package bench

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// compare measures ours and the peers in turn, Repetitions times, so that
// whatever disturbs the machine disturbs all of them. Of the repetitions the
// median counts, and of several variants of a peer the one with the least
// median, size by size.
func compare(ctx context.Context, cfg *Config) error {
	n := cfg.Processes
	var notes []string
	note := func(format string, a ...any) {
		line := fmt.Sprintf(format, a...)
		notes = append(notes, line)
		fmt.Fprintln(cfg.Stderr, "# "+line)
	}
	binaries := map[string]string{}
	for _, name := range cfg.Peers {
		binary, err := peers[name].build(ctx)
		if err != nil {
			note("peer %s: %v", name, err)
			continue
		}
		binaries[name] = binary
	}
	dir, err := os.MkdirTemp("", "ringo-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	plan := cfg.plan(n)
	samples := samples{}
	var ours *Report
	refused := map[string]bool{} // "peer variant series" that need not be tried again
	bar := progress(cfg.Stderr, cfg.Repetitions, "repetitions")
	for rep := range cfg.Repetitions {
		if ours, err = child(ctx, cfg, filepath.Join(dir, fmt.Sprintf("%d.json", rep))); err != nil {
			return err
		}
		for _, row := range ours.Rows {
			samples.add("ringo", "", row)
		}
		tcp := overNetwork(ours.Transport)
		for _, name := range cfg.Peers {
			if binaries[name] == "" {
				continue
			}
			for _, v := range peers[name].variants(tcp) {
				for i := range plan {
					s := &plan[i]
					what := fmt.Sprintf("peer %s (%s): %s %v %s", name, v.name, s.Name, s.typ, s.opName())
					if refused[what] {
						continue
					}
					rows, err := peers[name].run(ctx, cfg, v, binaries[name], n, s, measureTime(plan))
					if ctx.Err() != nil {
						return context.Cause(ctx)
					}
					if err != nil {
						refused[what] = true
						if bar != nil {
							bar.Clear()
						}
						note("%s: %v", what, err)
					}
					for _, row := range rows {
						samples.add(name, v.name, row)
					}
				}
			}
		}
		if bar != nil {
			bar.Add(1)
		}
	}

	report := *ours
	report.Rows, report.Flags = nil, cfg.Args
	report.Notes = slices.Concat(ours.Notes, describePeers(cfg, ours.Transport), notes)
	rec := newRecorder(cfg, &report, plan)
	for _, name := range cfg.Peers {
		if binaries[name] != "" {
			rec.table.peers = append(rec.table.peers, name)
		}
	}
	for _, row := range ours.Rows {
		beside := map[string]*Row{}
		for _, name := range rec.table.peers {
			beside[name] = samples.best(name, row, n)
		}
		rec.add(*samples.best("ringo", row, n), beside)
	}
	rec.verdict()
	return rec.finish()
}

// overNetwork reports whether a transport is one that peers must meet over TCP.
func overNetwork(transport string) bool {
	return !slices.Contains([]string{"shm", "inproc"}, transport)
}

// describePeers says how the peers were run.
func describePeers(cfg *Config, transport string) []string {
	var lines []string
	for _, name := range cfg.Peers {
		var ways []string
		for _, v := range peers[name].variants(overNetwork(transport)) {
			ways = append(ways, strings.TrimSpace(v.name+" "+strings.Join(append(v.env, v.args...), " ")))
		}
		lines = append(lines, fmt.Sprintf("peer %s: %s", name, strings.Join(ways, "; or ")))
	}
	return append(lines, fmt.Sprintf("%d repetitions of each in turn, medians; ratio is the peer's time / ours: above 1 we are ahead", cfg.Repetitions))
}

// samples are the rows of all repetitions by program, variant and case.
type samples map[string]map[string]map[rowKey][]Row

func (s samples) add(program, variant string, r Row) {
	if s[program] == nil {
		s[program] = map[string]map[rowKey][]Row{}
	}
	if s[program][variant] == nil {
		s[program][variant] = map[rowKey][]Row{}
	}
	s[program][variant][r.key()] = append(s[program][variant][r.key()], r)
}

// best is a program's row beside ours: medians of the repetitions, of the
// variant that is fastest in each form; nil if there is none.
func (s samples) best(program string, ours Row, n int) *Row {
	var best *Row
	for _, byCase := range s[program] {
		rows := byCase[ours.key()]
		if len(rows) == 0 {
			continue
		}
		c, _ := find(ours.Collective)
		r := rows[0]
		r.OutOfPlace = median(rows, c, n, func(r Row) *Measure { return r.OutOfPlace })
		r.InPlace = median(rows, c, n, func(r Row) *Measure { return r.InPlace })
		if best == nil {
			best = &r
			continue
		}
		best.OutOfPlace = faster(best.OutOfPlace, r.OutOfPlace)
		best.InPlace = faster(best.InPlace, r.InPlace)
	}
	return best
}

func faster(a, b *Measure) *Measure {
	if a == nil || b != nil && b.Time < a.Time {
		return b
	}
	return a
}

// median is the Measure of the median time; wrong elements of all are added up.
func median(rows []Row, c Collective, n int, form func(Row) *Measure) *Measure {
	var all []*Measure
	for _, r := range rows {
		if m := form(r); m != nil {
			all = append(all, m)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b *Measure) int {
		switch {
		case a.Time < b.Time:
			return -1
		case a.Time > b.Time:
			return 1
		}
		return 0
	})
	mid := *all[len(all)/2]
	if len(all)%2 == 0 {
		mid.Time = (mid.Time + all[len(all)/2-1].Time) / 2
	}
	mid.Min = all[0].Time
	mid.bandwidth(c, rows[0].Size, n)
	if mid.Wrong != nil {
		sum := int64(0)
		for _, m := range all {
			sum += *m.Wrong
		}
		mid.Wrong = &sum
	}
	return &mid
}

// verdict sums up the ratios to the best peer of each row with a size above 0.
func (r *recorder) verdict() {
	if len(r.table.peers) == 0 {
		return
	}
	logs, rows := 0.0, 0
	worst, at := math.Inf(1), ""
	best := map[rowKey]float64{}
	for _, row := range r.report.Rows {
		if row.Program == "ringo" || row.OutOfPlace == nil {
			continue
		}
		if t, ok := best[row.key()]; !ok || row.OutOfPlace.Time < t {
			best[row.key()] = row.OutOfPlace.Time
		}
	}
	for _, row := range r.report.Rows {
		t, ok := best[row.key()]
		if row.Program != "ringo" || row.Size == 0 || !ok || row.OutOfPlace == nil || row.OutOfPlace.Time <= 0 || t <= 0 {
			continue
		}
		x := t / row.OutOfPlace.Time
		logs, rows = logs+math.Log(x), rows+1
		if x < worst {
			worst, at = x, fmt.Sprintf("%s of %s", row.Collective, FormatSize(row.Size))
		}
	}
	if rows > 0 {
		fmt.Fprintf(r.table.w, "# Best peer / ringo    : %s on average (geometric), %s at worst (%s)\n",
			formatRatio(math.Exp(logs/float64(rows))), formatRatio(worst), at)
	}
}
