package launch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// Program runs one command, as cmd.Run does, and ends what it has left running, as Run does for ranks. The command gets
// no variables and stays in this process's group, so that it reads the terminal and has its Ctrl-C. When ctx ends it is
// killed. The error of a command that fails is an *Error, of rank -1. Of cmd only Path, Args, Env, Stdout, Stderr, and
// Stdin if it is a file, count.
func Program(ctx context.Context, cmd *exec.Cmd) error {
	if cmd.Err != nil {
		return &Error{Rank: -1, Err: cmd.Err}
	}
	by := newParent(fileOf(cmd.Stderr))
	defer by.close()
	stdin, _ := cmd.Stdin.(*os.File)
	stdout, stderr := sinks(cmd.Stdout, cmd.Stderr)
	p, streams, err := begin(by, program{cmd.Path, cmd.Args, cmd.Environ(), true}, stdin, stdout.of(""), stderr.of(""))
	if err != nil {
		return &Error{Rank: -1, Err: err}
	}
	select {
	case <-p.ended:
	case <-ctx.Done():
		by.signal(p, syscall.SIGKILL)
		<-p.ended
	}
	left := leave(context.Background(), by, streams)
	how := failure(-1, p.how, streams)
	fmt.Fprint(stderr, left.text("the program", how == nil))
	if how == nil {
		return nil // and no nil *Error
	}
	return how
}

// leave ends what processes have left running, when all have ended, and passes on their last output, until ctx ends at
// most.
func leave(ctx context.Context, by parent, streams []*stream) leftovers {
	left := by.end()
	for _, s := range streams {
		s.stop()
	}
	await(ctx, streams)
	return left
}
