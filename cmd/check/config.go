package check

import (
	"log/slog"
	"time"

	"github.com/ringo-go/ringo/gpu"
)

// A config says what to check. The zero config is a quick check of everything. All ranks
// must have the same, but for Log.
type config struct {
	// Full takes up to 10 minutes in place of 30 s.
	Full bool
	// Stages are those to carry out; nil is stages().
	Stages []stage
	// Within is how long all stages may take together, each within its own limit, from the moment when all ranks have
	// joined; stages for which no time is left are left out. 0 is 30 s or 10 minutes, and no limit if Stages is given.
	Within time.Duration
	// ExpectGPUs is how many GPUs every host has; 0: as many as most hosts have.
	ExpectGPUs int
	// NoGPUs leaves GPUs alone.
	NoGPUs bool
	// NCCL is the file of NCCL's library, such as libnccl.so.2, with which the collectives over each host's GPUs are
	// repeated, if Stages is nil; empty is no such stage. Hosts without the file skip the stage.
	NCCL string
	// GPU is the driver.
	GPU gpu.Options
	// Baseline is the report of an earlier run on this cluster, which rank 0 compares with; nil for none.
	Baseline *report
	// gpus stands in for GPU and NVML in tests.
	gpus *gpuSource
	// Log may be nil.
	Log *slog.Logger
	// Progress is called before each stage, with the share of stages that are done, by the first rank. It may be nil.
	Progress func(stage string, share float64)

	tamper map[int]func([]uint32) // by rank: changes what it contributes to collectives, in tests
	shared bool                   // hosts of the job are one machine that pretends to be several
}

// within is Within or its default, 0 for no limit.
func (c *config) within() time.Duration {
	switch {
	case c.Within != 0 || c.Stages != nil:
		return c.Within
	case c.Full:
		return withinFull
	}
	return withinQuick
}

// Longest bounds the time from the call of join, with the given Timeout, to the report of run; 0 is no bound. A
// launcher need not wait for a report any longer.
func (c *config) Longest(join time.Duration) time.Duration {
	if c.within() == 0 {
		return 0
	}
	return join + connectTime + rollTime + c.within() + 2*answerTime // of the roll and of the last stage
}
