package command

import (
	"context"
	"fmt"
	"io"

	"github.com/ringo-go/ringo/bench"
	"github.com/ringo-go/ringo/internal/cli"
)

const plotHelp = `usage: ringo plot -o FILE REPORT.json...

Draws reports that "ringo bench --json REPORT.json" has saved: for each
collective time and bus bandwidth against size, and the time of each as a
multiple of the first one's; one line a program and report.

  -o FILE        what to write: .svg, .png or .html
  --title TEXT   above it all

Example
  ringo bench allreduce --transport shm --json shm.json
  ringo bench allreduce --transport tcp --json tcp.json
  ringo plot -o both.svg shm.json tcp.json
`

func runPlot(_ context.Context, args []string, stdout, _ io.Writer) error {
	fs := flags("plot")
	out := fs.String("o", "", "")
	title := fs.String("title", "", "")
	files, err := cli.Parse(fs, args)
	if err != nil {
		return err
	}
	if *out == "" || len(files) == 0 {
		return cli.Usagef("give -o FILE.svg, .png or .html and at least one report")
	}
	if err := cli.Writable("-o", *out); err != nil {
		return err
	}
	var reports []*bench.Report
	for _, f := range files {
		r, err := bench.Load(f)
		if err != nil {
			return err
		}
		reports = append(reports, r)
	}
	if err := bench.Plot(*out, *title, reports...); err != nil {
		return err
	}
	fmt.Fprintln(stdout, *out)
	return nil
}
