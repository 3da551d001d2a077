// Package device measures the GPUs of one machine as Ringo uses them: how fast
// memory is copied and combined, what a launch costs and how long the first use
// of a kernel takes. The command "ringo probe" runs it; nothing here is promised to
// other modules.
//
// The trap: bandwidths count all bytes, read and written, so a copy has twice the
// rate that other programs may report.
package device

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ringo-go/ringo/bench"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/device"
)

// A Config says what to measure and how.
type Config struct {
	Driver  cuda.Driver
	Ordinal int // of the device

	Types   []kernels.DataType
	Ops     []kernels.RedOp
	Sources []int   // numbers of sources to combine, 1 to device.MaxSources
	Sizes   []int64 // bytes of each source

	Repetitions int // of each measurement; the median counts

	// LaunchPeer is the library made of testdata/launch.c, which launches from
	// C in turn with Go; "" for none.
	LaunchPeer string
	// FirstUse is the command line of a process that calls MeasureFirstUse for the
	// type and the operator named by its last two arguments, which are added, and
	// prints the result as JSON; nil for none.
	FirstUse []string

	Table io.Writer
}

// Run carries out the measurements. If results of a combine were wrong it returns both
// the report and a *WrongError.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	r := &Report{Header: bench.NewHeader(Schema, nil), Rows: []Row{}}
	t := &table{w: cfg.Table}
	err := session(cfg.Driver, cfg.Ordinal, func(c cuda.Context) error {
		var err error
		if r.Driver, r.GPU, err = describe(cfg.Driver, cfg.Ordinal); err != nil {
			return err
		}
		r.note(cfg)
		t.preamble(r)
		for _, part := range []func(context.Context, Config, cuda.Context, *Report, *table) error{bandwidths, launches,
			firstUses, texts} {
			if err := part(ctx, cfg, c, r, t); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if n := r.wrong(); n > 0 {
		return r, &WrongError{n}
	}
	return r, nil
}

// A WrongError says that bytes of results differed from those of the Go arithmetic.
type WrongError struct{ Bytes int64 }

func (e *WrongError) Error() string {
	return fmt.Sprintf("%d bytes of results differ from those of the Go arithmetic", e.Bytes)
}

// session calls f with the device's primary context current.
func session(d cuda.Driver, ordinal int, f func(cuda.Context) error) (err error) {
	dev, err := d.DeviceGet(ordinal)
	if err != nil {
		return err
	}
	c, err := d.DevicePrimaryCtxRetain(dev)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.DevicePrimaryCtxRelease(dev)) }()
	return cuda.With(d, c, func() error { return f(c) })
}

// defined lists the reducers of the types and operations that go together.
func (cfg *Config) defined() (list []*kernels.Reducer, names []string) {
	for _, t := range cfg.Types {
		for _, op := range cfg.Ops {
			if r, err := kernels.NewReducer(t, op, 8); err == nil {
				list, names = append(list, r), append(names, op.String())
			}
		}
	}
	return list, names
}

// maxSources is how many sources are combined at most.
func (cfg *Config) maxSources() (k int) {
	for _, n := range cfg.Sources {
		k = max(k, n)
	}
	return k
}

// Check refuses a Config that Run cannot measure.
func (cfg *Config) Check() error {
	for _, k := range cfg.Sources {
		if k < 1 || k > device.MaxSources {
			return fmt.Errorf("-k %d: a kernel combines 1 to %d sources", k, device.MaxSources)
		}
	}
	for _, n := range cfg.Sizes {
		if n < 16 || n%16 != 0 {
			return fmt.Errorf("-b %d: want a multiple of 16", n)
		}
	}
	if list, _ := cfg.defined(); len(list) == 0 {
		return errors.New("-o: none is defined for -d: bitwise operators need integers")
	}
	return nil
}
