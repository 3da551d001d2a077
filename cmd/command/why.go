package command

import (
	"context"
	"fmt"
	"io"

	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/trace/history"
)

// whyHelp is what "ringo why -h" prints.
const whyHelp = `usage: ringo why FILE...

Says why ranks hang, or have failed: one sentence that names who is to blame,
and a table of where each rank is. FILEs are what the ranks have written, or
folders of them. A rank writes its last calls into the folder RINGO_HISTORY when
its communicator fails, and when its process gets RINGO_HISTORY_SIGNAL. A rank
without a file is taken for dead or stopped, so give it those of all.

Examples
  RINGO_HISTORY=/tmp/hist RINGO_TIMEOUT=60s ringo run -np 4 -- ./train
  ringo why /tmp/hist
  RINGO_HISTORY=/tmp/hist RINGO_HISTORY_SIGNAL=USR2 ./train & kill -USR2 $!
`

func runWhy(_ context.Context, args []string, stdout, stderr io.Writer) error {
	files, err := cli.Parse(flags("why"), args)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return cli.Usagef("which files? write: ringo why FOLDER")
	}
	records, skipped, err := history.Read(files...)
	if err != nil {
		return err
	}
	for _, s := range skipped {
		fmt.Fprintf(stderr, "left out: %v\n", s)
	}
	for i, f := range history.Why(records) {
		if i > 0 {
			fmt.Fprintln(stdout)
		}
		if err := f.Print(stdout); err != nil {
			return err
		}
	}
	return nil
}
