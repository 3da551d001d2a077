package command

import (
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/ringo-go/ringo/bench"
	"github.com/ringo-go/ringo/internal/cli"
)

// plotHelp is what "ringo plot -h" prints.
const plotHelp = `usage: ringo plot -o FILE REPORT.json...
       ringo plot -o FILE TRACE.json

Draws reports that "ringo bench -json REPORT.json" has saved: for each
collective time and bus bandwidth against size, and the time of each as a
multiple of the first one's; one line a program and report. Of a trace that
"ringo bench -trace" or "ringo sim -trace" has saved it draws one collective:
the steps of each rank, and in them what they wait for.

Examples
  ringo bench allreduce -transport shm -json shm.json
  ringo bench allreduce -transport tcp -json tcp.json
  ringo plot -o both.svg shm.json tcp.json
  ringo bench allreduce -b 1M -e 1M -trace steps.json
  ringo plot -o steps.svg steps.json

{o title call}
`

func runPlot(_ context.Context, args []string, stdout, _ io.Writer) error {
	fs := flags("plot")
	out, call := fs.String("o", "", "`FILE` what to write: .svg, or of reports .html"), 0
	title := fs.String("title", "", "`TEXT` above it all")
	cli.Int(fs, &call, 0, math.MaxInt32, "the number of a collective, or 0 for the last",
		"call `N` of a trace: the collective with this number (default: the last one that all ranks have steps of)")
	files, err := cli.Parse(fs, args)
	if err != nil {
		return err
	}
	if *out == "" || len(files) == 0 {
		return cli.Usagef("give -o FILE.svg or .html and at least one report")
	}
	text, err := cli.Outputs(stdout, cli.Output{Flag: "-o", File: *out, Ends: []string{".svg", ".html"}})
	if err != nil {
		return err
	}
	t, err := loadTrace(files)
	if err != nil {
		return cli.Usagef("%v", err)
	}
	if t != nil {
		err = drawTrace(*out, stdout, *title, t, uint32(call))
	} else {
		err = plotReports(*out, stdout, *title, files)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(text, *out)
	return nil
}

func plotReports(out string, stdout io.Writer, title string, files []string) error {
	var reports []*bench.Report
	for _, f := range files {
		r, err := bench.Load(f)
		if err != nil {
			return cli.Usagef("%v", err)
		}
		reports = append(reports, r)
	}
	return cli.Save("-o", out, stdout, func(w io.Writer) error {
		return bench.Draw(w, strings.EqualFold(filepath.Ext(out), ".html"), title, reports...)
	})
}
