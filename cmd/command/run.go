package command

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/ringo-go/ringo/bootstrap/launch"
	"github.com/ringo-go/ringo/internal/cli"
)

// runHelp is what "ringo run -h" prints.
const runHelp = `usage: ringo run [flags] [--] PROGRAM [arguments]

Starts PROGRAM as several ranks on this machine. Each finds its rank in
RINGO_RANK and RINGO_SIZE, in torchrun's RANK, WORLD_SIZE, LOCAL_RANK,
MASTER_ADDR and MASTER_PORT, and the meeting point in RINGO_COMM_ID; a program
that calls ringo.OpenEnv needs to know none of them. Output lines of rank r
begin with [r], lines above 16 MiB are cut and go on with [r]+. Rank 0 reads
the standard input, unless that is a terminal. What ranks have started ends
with the last of them; processes in a session of their own (setsid) are left
running and named. docs/launch.md says more.

Example
  ringo run -np 4 -- ./train -epochs 3

{np hosts restarts grace no-prefix}

The exit status is that of the rank which failed first, 128 and the signal's
number if it was killed, 127 if PROGRAM is not there, 126 if it cannot be
executed, and 0 if all ended well. A rank that the others have gone on without
does not count.
`

func runRun(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("run")
	n, hosts, restarts := new(int), new(int), new(int)
	*n, *hosts = 4, 1
	cli.Int(fs, n, 1, 4096, "1 to 4096 ranks", "np `N` ranks (default 4)")
	cli.Int(fs, hosts, 1, 4096, "1 or more hosts, and at most -np", "hosts `H` have the ranks think that "+
		"they are on H hosts, in equal blocks (sets RINGO_HOSTID and NCCL_HOSTID)")
	cli.Int(fs, restarts, 0, mostSeeds, "0 or more, at most a million", "restarts `N` start a rank that "+
		"fails again, up to N times (default 0). The others go on: they Shrink, or close the communicator and open "+
		"it again under the same variables, or fail and are started again too. RINGO_RESTART counts a rank's restarts")
	grace := durationFlag(fs, 2*time.Second, 0, "grace `D` how long the others may go on after the first "+
		"failure, to end with messages of their own (default 2s). Those that have gone on without the failed rank by "+
		"then (Shrink) have no such end")
	bare := fs.Bool("no-prefix", false, "leave the lines as they are")
	// Flags after PROGRAM are its own.
	program, err := cli.ParseFirst(fs, args)
	switch {
	case err != nil:
		return err
	case len(program) == 0:
		return cli.Usagef("which program? write: ringo run -np %d -- PROGRAM", *n)
	case *hosts > *n:
		return cli.Usagef("-hosts %d: want 1 to %d", *hosts, *n)
	}
	// A Grace of 0 is the default, so -grace 0 is the least above it.
	return launch.Run(ctx, launch.Config{N: *n, Hosts: *hosts, Restarts: *restarts, Args: program, Stdin: os.Stdin,
		Stdout: stdout, Stderr: stderr, Prefix: !*bare, Grace: max(*grace, 1), GraceFlag: "-grace"})
}
