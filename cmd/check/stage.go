package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Stage is one question to all ranks; see the package's comment for the contract.
type Stage struct {
	Name string // one or two words: "host", "GPU memory"
	Asks string // the question, a sentence
	// Quick and Full are the time limits of the two efforts; zero leaves the stage out.
	Quick, Full time.Duration
	Measure     func(ctx context.Context, j *Job) ([]Measurement, error)
	Judge       func(r *Report, cfg *Config) []Finding
}

// limit is the time that the stage has; zero leaves it out.
func (s *Stage) limit(full bool) time.Duration {
	if full {
		return s.Full
	}
	return s.Quick
}

// A skipError is the error of a stage that has nothing to do.
type skipError struct{ why string }

func (e *skipError) Error() string { return e.why }

// Skip is the error by which Measure says that there is nothing to measure here. It makes no
// finding.
func Skip(format string, a ...any) error { return &skipError{fmt.Sprintf(format, a...)} }

// skipped is why err skips, and whether it does.
func skipped(err error) (string, bool) {
	if s, ok := errors.AsType[*skipError](err); ok {
		return s.why, true
	}
	return "", false
}

// Stages are those of a check, in order: causes before effects.
func Stages() []Stage {
	return slices.Concat([]Stage{hostStage()}, gpuStages(), []Stage{networkStage(), collectiveStage()})
}
