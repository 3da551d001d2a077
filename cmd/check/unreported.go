package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/internal/given"
)

// Whoever watches the files of a check gets a report of each, also of one that has not come about: yesterday's would go
// on saying that all is well.

// unreported is a report of a check that has not come about, with the reasons.
func (f *commandFlags) unreported(started time.Time, why ...finding) *report {
	r := &report{Schema: schema, Version: ringo.Version, Started: started.UTC().Truncate(time.Second), Full: f.cfg.Full,
		Hosts: []hostReport{}, Stages: []stageReport{}, Findings: why, Measurements: []measurement{},
		Took: time.Since(started).Seconds()}
	for i := range r.Findings {
		r.Findings[i].Stage = rendezvous
	}
	r.judged()
	return r
}

// noAnswer are the findings about hosts that did not answer, none of which is to blame if no host did.
func noAnswer(absent []loss, some bool) (list []finding) {
	for _, l := range absent {
		f := finding{Severity: broken, Code: "absent", Subject: of(l.Host, ""), Weight: 1000, Text: l.Why}
		if !some {
			f.Severity, f.Text = unjudged, f.Text+" (no host answers: look at this machine's network and ssh first)"
		}
		list = append(list, f)
	}
	return list
}

// noReport prints why this rank has no report to give, or no part in one, and returns the error to exit with. If nobody
// else can have a report of the check, the files asked for get one that says why.
func (f *commandFlags) noReport(ctx context.Context, started time.Time, err error, stdout, stderr io.Writer) error {
	why := finding{Severity: unjudged, Code: "not-judged", Text: err.Error()}
	absent, ok := errors.AsType[*absentError](err)
	if ok {
		why = finding{Severity: broken, Code: "absent", Subject: subject{component: absent.Who}, Text: absent.Why}
	}
	fmt.Fprintf(stderr, "ringo check: %v: %s\n", why.Severity,
		given.Printable(strings.ReplaceAll(err.Error(), "\n", "; ")))
	if ok && absent.wait != nil { // the others have a report
		absent.Wait(ctx)
		return cli.ExitStatus(why.Severity)
	}
	out := *f
	if f.worker { // the launcher reads its standard output
		stdout = io.Discard
	}
	if spec, launched, err := bootstrap.FromEnv(os.Getenv); err != nil || launched && spec.Rank > 0 {
		stdout = io.Discard
		for _, file := range []*string{&out.json, &out.junit, &out.svg, &out.html, &out.metrics} {
			if info, err := os.Stat(*file); *file == "-" || err == nil && !info.ModTime().Before(started) {
				*file = "" // rank 0 may have written it
			}
		}
	}
	if err := out.write(f.unreported(started, why), stdout); err != nil {
		fmt.Fprintf(stderr, "ringo check: %v\n", err)
	}
	return cli.ExitStatus(why.Severity)
}

// noLeader is the report of hosts of which none has given one.
func (f *commandFlags) noLeader(started time.Time, here []*worker, absent []loss, err error) *report {
	list := noAnswer(absent, true)
	for i, w := range here {
		text := "it answered, and no report came"
		if i == 0 {
			text = fmt.Sprintf("it leads, and gave no report: %v", err)
		}
		if line := w.errors.line(); line != "" {
			text += ": " + line
		}
		list = append(list, finding{Severity: unjudged, Code: "no-report", Subject: of(w.name(), fmt.Sprint("rank ", i)),
			Text: text})
	}
	return f.unreported(started, list...)
}
