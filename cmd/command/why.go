package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ringo-go/ringo/cmd/why/flight"
	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/trace/history"
)

// whyHelp is what "ringo why -h" prints.
const whyHelp = `usage: ringo why FILE...

Says why ranks hang, or have failed: one sentence that names who is to blame,
and a table of where each rank is. FILEs are what the ranks have written, or
folders of them:
  - dumps of PyTorch's flight recorder, pickles or JSON, whichever library
    carries the collectives. A dump's rank is the last number of its name;
  - histories of this library: a rank writes its last calls into the folder
    RINGO_HISTORY when its communicator fails, and when its process gets
    RINGO_HISTORY_SIGNAL.
Give it the files of all ranks: one without is taken for dead or stopped.

Examples
  ringo why /tmp/nccl_trace_rank_*
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
	own, dumps, err := sortFiles(files)
	if err != nil {
		return err
	}
	var found []printer
	if len(own) > 0 {
		records, skipped, err := history.Read(own...)
		if err != nil {
			return err
		}
		leftOut(stderr, skipped)
		for _, f := range history.Why(records) {
			found = append(found, &f)
		}
	}
	if len(dumps) > 0 {
		job, skipped, err := flight.Read(dumps...)
		if err != nil {
			return err
		}
		leftOut(stderr, skipped)
		a := hang.Judge(job)
		found = append(found, &a)
	}
	for i, f := range found {
		if i > 0 {
			fmt.Fprintln(stdout)
		}
		if err := f.Print(stdout); err != nil {
			return err
		}
	}
	return nil
}

// A printer is a verdict with its table.
type printer interface{ Print(io.Writer) error }

func leftOut(w io.Writer, skipped []error) {
	for _, s := range skipped {
		fmt.Fprintf(w, "left out: %v\n", s)
	}
}

// sortFiles tells dumps of PyTorch's flight recorder from what is history's, by how they begin. Of a folder with
// such dumps these count, and its histories if it has any.
func sortFiles(paths []string) (own, dumps []string, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil || !info.IsDir() {
			if err == nil && flight.IsFile(path) {
				dumps = append(dumps, path)
			} else {
				own = append(own, path) // it says what is wrong
			}
			continue
		}
		list, err := os.ReadDir(path)
		if err != nil {
			return nil, nil, err
		}
		histories, before := 0, len(dumps)
		for _, e := range list {
			file := filepath.Join(path, e.Name())
			if is, _ := filepath.Match(history.Files, e.Name()); is {
				histories++
			} else if flight.IsFile(file) {
				dumps = append(dumps, file)
			}
		}
		if histories > 0 || len(dumps) == before {
			own = append(own, path)
		}
	}
	return own, dumps, nil
}
