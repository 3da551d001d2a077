package gpucomm

import (
	"context"
	"log/slog"
	"time"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/gpupaths"
	"github.com/ringo-go/ringo/core/life"
	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/core/request"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/process"
)

// Options are what a Comm is made of.
type Options struct {
	Device        *gpu.Device
	Quota         *gpupaths.Quota
	Life          *life.Life
	Group         bootstrap.Group
	Chooser       choice.Chooser // as for host memory; Open adds the GPUs' kernels and plan
	Plan          *choice.Plan   // rank 0's; may be nil
	Numberer      *request.Numberer
	Host          *paths.Net
	Paths         *paths.Config
	JoinTimeout   time.Duration // bounds the meetings of Register and Window.Close
	CheckPointers bool          // ask the driver about the memory of every call
	FIFOBytes     int           // see grid.Options
	ArgsBytes     int           // the same
	LaunchOrder   bool          // operations follow those of other communicators
	// Lock takes the Turn behind all that this rank has begun. InTurn calls f in it, also if ctx ends before: then later
	Lock    func(context.Context) error
	InTurn  func(ctx context.Context, f func() error) error
	Process *process.Process // that has what communicators share; nil is the default
	Log     *slog.Logger
}
