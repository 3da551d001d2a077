package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A stage is one question to all ranks; see the package's comment for the contract.
type stage struct {
	Name string // one or two words: "host", "GPU memory"
	Asks string // the question, a sentence
	// Quick and Full are the time limits of the two efforts; zero leaves the stage out.
	Quick, Full time.Duration
	Measure     func(ctx context.Context, j *job) ([]measurement, error)
	Judge       func(r *report, cfg *config) []finding
}

// limit is the time that the stage has; zero leaves it out.
func (s *stage) limit(full bool) time.Duration {
	if full {
		return s.Full
	}
	return s.Quick
}

// A skipError is the error of a stage that has nothing to do.
type skipError struct{ why string }

func (e *skipError) Error() string { return e.why }

// skip is the error of a Measure that has nothing to measure on this rank. It makes no
// finding.
func skip(format string, a ...any) error { return &skipError{fmt.Sprintf(format, a...)} }

// skipped returns the reason of an error of skip; false for any other error.
func skipped(err error) (string, bool) {
	if s, ok := errors.AsType[*skipError](err); ok {
		return s.why, true
	}
	return "", false
}

// stages are those of a check, in order: causes before effects.
func stages() []stage {
	return slices.Concat([]stage{hostStage()}, gpuStages(), []stage{networkStage(), collectiveStage()})
}
