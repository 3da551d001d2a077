package launch

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/ringo-go/ringo/bootstrap"
)

// Copies makes a program its own launcher: it starts n copies of the program, with its arguments, as ranks, and returns
// when all have ended. Where a launcher has started this process, which is then a rank, it does nothing and parent is
// false:
//
//	if parent, err := launch.Copies(ctx, 4); parent {
//		os.Exit(launch.Status(err))
//	}
//	c, err := ringo.OpenEnv(ctx, ringo.Config{})
//
// Each line of a rank begins with its number. The error for a rank is an *Error; the rank's own output says more.
func Copies(ctx context.Context, n int) (parent bool, err error) {
	if _, ok, err := bootstrap.FromEnv(os.Getenv); ok || err != nil {
		return false, nil // ringo.OpenEnv returns the error
	}
	exe, err := os.Executable()
	if err != nil {
		return true, fmt.Errorf("launch: %w", err)
	}
	args := append([]string{exe}, os.Args[1:]...)
	return true, Run(ctx, Config{N: n, Args: args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Prefix: true})
}

// Status is the exit status for a launcher: 0 for nil, an Error's ExitStatus, 1 for other errors.
func Status(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.ExitStatus()
	}
	if err != nil {
		return 1
	}
	return 0
}
