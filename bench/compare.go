package bench

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/internal/trusted"
)

// compare measures ours and the peers in turn, Repetitions times and each time with another of them first, so that a
// disturbance of the machine affects all of them. The median of the repetitions counts, and of several variants of a
// peer the one with the least median, size by size.
func compare(ctx context.Context, cfg *Config) error {
	c := &comparison{cfg: cfg, plan: cfg.plan(cfg.Processes), binaries: map[string]string{},
		refused: map[string]bool{}}
	c.build(ctx)
	dir, err := trusted.MkdirTemp("", "ringo-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c.bar.begin(cfg.Stderr, "repetitions", cfg.Repetitions)
	var ours *Report
	for rep := range cfg.Repetitions {
		for _, name := range inTurn(append([]string{"ringo"}, cfg.Peers...), rep) {
			if name == "ringo" {
				ours, err = c.measureOurs(ctx, filepath.Join(dir, fmt.Sprintf("%d.json", rep)))
			} else {
				err = c.measure(ctx, name, overTCP(cfg, ours.Transport))
			}
			if err != nil {
				return err
			}
		}
		c.bar.next()
	}
	c.bar.progress.Clear()
	return c.finish(ours)
}

// inTurn is a list in the order of a round. In as many rounds as it has elements, each element is first once.
func inTurn[T any](list []T, round int) []T {
	first := round % len(list)
	return slices.Concat(list[first:], list[:first])
}

// A comparison is ours and the peers on the same plan.
type comparison struct {
	cfg      *Config
	plan     []series
	binaries map[string]string // of the peers that could be built
	samples  samples
	refused  map[string]bool // "peer variant series" that need not be tried again
	notes    []string
	bar      steps
}

// note prints a note and puts it into the report.
func (c *comparison) note(format string, a ...any) {
	c.bar.progress.Hide()
	line := fmt.Sprintf(format, a...)
	c.notes = append(c.notes, line)
	fmt.Fprintln(cli.Text(c.cfg.Stderr), "# "+line)
}

// build makes the peers' programs. A peer that cannot be built is left out.
func (c *comparison) build(ctx context.Context) {
	for _, name := range c.cfg.Peers {
		binary, err := peers[name].build(ctx)
		if err != nil {
			c.note("peer %s: %v", name, err)
			continue
		}
		c.binaries[name] = binary
	}
}

// measureOurs carries out the plan once with this library.
func (c *comparison) measureOurs(ctx context.Context, file string) (*Report, error) {
	ours, err := child(ctx, c.cfg, file)
	if err != nil {
		return nil, err
	}
	for _, row := range ours.Rows {
		c.samples.add("", row)
	}
	return ours, nil
}

// measure carries out the plan once with each variant of a peer.
func (c *comparison) measure(ctx context.Context, name string, tcp bool) error {
	if c.binaries[name] == "" {
		return nil
	}
	for _, v := range peers[name].variants(tcp) {
		for i := range c.plan {
			s := &c.plan[i]
			what := fmt.Sprintf("peer %s (%s): %s %v %s", name, v.name, s.Name, s.typ, s.opName())
			if c.refused[what] {
				continue
			}
			rows, err := peers[name].run(ctx, c.cfg, v, c.binaries[name], c.cfg.Processes, s, measureTime(c.plan))
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil {
				c.refused[what] = true
				c.note("%s: %v", what, err)
			}
			for _, row := range rows {
				c.samples.add(v.name, row)
			}
		}
	}
	return nil
}

// finish prints and saves the rows of our last report, with the peers' rows beside them.
func (c *comparison) finish(ours *Report) error {
	cfg, n := c.cfg, c.cfg.Processes
	report := *ours
	report.Rows, report.Flags = nil, cfg.Args
	report.Notes = slices.Concat(ours.Notes, describePeers(cfg, ours.Transport), c.notes)
	rec := newRecorder(cfg, &report, c.plan)
	rec.table.held = map[string]string{}
	for _, name := range cfg.Peers {
		if c.binaries[name] != "" {
			rec.table.peers = append(rec.table.peers, name)
			rec.table.held[name] = heldTo(cfg, name, ours.Transport)
		}
	}
	for _, row := range ours.Rows {
		beside := map[string]*Row{}
		for _, name := range rec.table.peers {
			beside[name] = c.samples.best(name, row, n)
		}
		rec.add(*c.samples.best("ringo", row, n), beside)
	}
	rec.verdict()
	return rec.finish()
}

// overTCP reports whether peers are held to TCP, as they are where ours goes over TCP. Elsewhere a peer takes its best
// transport.
func overTCP(cfg *Config, transport string) bool {
	return transport == "tcp" || transport == "socket" && cfg.Hosts > 1
}

// heldTo is the only transport that a peer has, where ours may go over others; "" if the peer has several.
func heldTo(cfg *Config, name, transport string) string {
	if only := peers[name].only; !overTCP(cfg, transport) {
		return only
	}
	return ""
}

// terms are the differences between the terms of ours and of the peers, a line each.
func terms(cfg *Config, transport string) []string {
	var lines []string
	if cfg.Transport != "auto" && !overTCP(cfg, transport) {
		lines = append(lines, fmt.Sprintf("ringo is held to %s (-transport), peers choose for themselves", cfg.Transport))
	}
	for _, name := range cfg.Peers {
		if held := heldTo(cfg, name, transport); held != "" {
			lines = append(lines, fmt.Sprintf("peer %s has no transport but %s, ringo goes over %s", name, held, transport))
		}
	}
	return lines
}

// describePeers says how the peers were run.
func describePeers(cfg *Config, transport string) []string {
	var lines []string
	for _, name := range cfg.Peers {
		var ways []string
		for _, v := range peers[name].variants(overTCP(cfg, transport)) {
			ways = append(ways, strings.TrimSpace(v.name+" "+strings.Join(append(v.env, v.args...), " ")))
		}
		lines = append(lines, fmt.Sprintf("peer %s: %s", name, strings.Join(ways, "; or ")))
	}
	lines = append(lines, terms(cfg, transport)...)
	return append(lines, fmt.Sprintf("%d repetitions of each in turn, another first each time; medians; ratio is the "+
		"peer's time / ours: above 1 we are ahead", cfg.Repetitions))
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
		for _, line := range terms(r.cfg, r.report.Transport) {
			fmt.Fprintf(r.table.w, "# Not on the same terms: %s\n", line)
		}
	}
}
