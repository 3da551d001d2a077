package device

import (
	"fmt"
	"io"

	"github.com/ringo-go/ringo/bench"
)

// A table prints results as they come.
type table struct{ w io.Writer }

func (t *table) line(format string, args ...any) { fmt.Fprintf(t.w, format+"\n", args...) }

func (t *table) preamble(r *Report) {
	g := &r.GPU
	t.line("# %s, compute capability %s, %d multiprocessors at %d MHz, %s of memory, %s of L2; driver %s of CUDA %d.%d",
		g.Name, g.Capability,
		g.SMs, g.ClockKHz/1000, bench.FormatSize(int64(g.Memory)>>30<<30), bench.FormatSize(int64(g.L2)), r.Driver.Name,
		r.Driver.Version/1000, r.Driver.Version%1000/10)
	t.line("# on %s (%d cores, %s), %s %s/%s", r.Host, r.Cores, r.CPU, r.Go, r.OS, r.Arch)
	for _, note := range r.Notes {
		t.line("# %s", note)
	}
}

func (t *table) bandwidths() {
	t.line("#\n#%7s  %-8s %-11s %-12s %7s %12s %12s %9s %8s %6s", "size", "what", "type", "op", "sources", "time (us)",
		"min (us)", "GB/s", "of copy", "wrong")
}

func (t *table) row(r *Row) {
	relative := "-"
	if r.OfCopy != 0 {
		relative = fmt.Sprintf("%.1f %%", 100*r.OfCopy)
	}
	t.line("%8s  %-8s %-11s %-12s %7d %12.2f %12.2f %9.1f %8s %6d", bench.FormatSize(r.Size), r.What, orDash(r.Type),
		orDash(r.Op), r.Sources,
		r.Median, r.Min, r.Bandwidth, relative, r.Wrong)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (t *table) launches(list []Launch) {
	t.line("#\n#%6s  %10s %12s %12s %14s", "launch", "parameters", "time (ns)", "min (ns)", "over C (ns)")
	for _, l := range list {
		over := "-"
		if l.Difference != 0 {
			over = fmt.Sprintf("%+.0f", l.Difference)
		}
		t.line("%7s  %10d %12.0f %12.0f %14s", l.From, l.Params, l.Nanosecs, l.Min, over)
	}
}

func (t *table) firstUses(list []FirstUse) {
	t.line("#\n# first use, in milliseconds\n#%6s  %-11s %-12s %9s %9s %9s", "cache", "type", "op", "load", "run", "total")
	for _, u := range list {
		t.line("%7s  %-11s %-12s %9.2f %9.2f %9.2f", u.Cache, u.Type, u.Op, u.Load, u.Run, u.Total)
	}
}

func (t *table) texts(p *Texts) {
	t.line("#\n# PTX: %d modules, %d bytes in the program; %d bytes of text, at most %d in one", p.Modules, p.Embedded,
		p.Bytes, p.Largest)
}
