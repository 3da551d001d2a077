package device

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/dl"
)

// A Launch is the time that a launch of an empty kernel takes on the launching thread.
type Launch struct {
	From       string  `json:"from"`   // "go", or "c"
	Params     int     `json:"params"` // bytes of parameters
	Nanosecs   float64 `json:"time_ns"`
	Min        float64 `json:"min_ns"`
	Difference float64 `json:"difference_ns"` // to C, median of the rounds; 0 where there is no C
	Rounds     int     `json:"rounds"`
	Each       int     `json:"each"` // launches of a round
}

// emptyText has kernels that do nothing. The number in their names is the bytes of
// their parameters: none, or about what combine has.
const emptyText = `.version 7.0
.target sm_70
.address_size 64
.visible .entry empty0() { ret; }
.visible .entry empty112(.param .align 8 .b8 p[112]) { ret; }
`

const (
	launchRounds = 101
	launchEach   = 500 // fewer than the driver queues without waiting
)

// launches measures launches from Go and, in turn with it, from C.
func launches(ctx context.Context, cfg Config, _ cuda.Context, r *Report, t *table) (err error) {
	d := cfg.Driver
	m, err := d.ModuleLoadData([]byte(emptyText))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.ModuleUnload(m)) }()
	s, err := d.StreamCreate(cuda.StreamNonBlocking, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.StreamDestroy(s)) }()
	var loop uintptr
	if cfg.LaunchPeer != "" {
		if loop, err = launchPeer(cfg.LaunchPeer); err != nil {
			return err
		}
	}
	for _, params := range []int{0, 112} {
		if err := ctx.Err(); err != nil {
			return err
		}
		f, err := d.ModuleGetFunction(m, fmt.Sprintf("empty%d", params))
		if err != nil {
			return err
		}
		rows, err := measureLaunches(d, f, s, params, loop)
		if err != nil {
			return err
		}
		r.Launches = append(r.Launches, rows...)
	}
	t.launches(r.Launches)
	return nil
}

// launchPeer is the function of testdata/launch.c.
func launchPeer(path string) (uintptr, error) {
	lib, err := dl.Open(path)
	if err != nil {
		return 0, fmt.Errorf("the peer that launches from C: %w; build it: gcc -O2 -shared -fPIC -o liblaunch.so "+
			"bench/device/testdata/launch.c -ldl", err)
	}
	return lib.Sym("launch_loop")
}

func measureLaunches(d cuda.Driver, f cuda.Function, s cuda.Stream, bytes int, loop uintptr) ([]Launch, error) {
	params := make([]byte, bytes)
	l := &cuda.Launch{Grid: cuda.Dim3{X: 1}, Block: cuda.Dim3{X: 32}, Stream: s}
	rounds, each := launchRounds, launchEach
	if d.Name() == "emu" {
		rounds, each = 3, 10
	}
	fromGo := func() (float64, error) {
		start := time.Now()
		for range each {
			if err := d.LaunchKernel(f, l, params); err != nil {
				return 0, err
			}
		}
		return float64(time.Since(start).Nanoseconds()), nil
	}
	fromC := func() (float64, error) { return callLoop(loop, f, s, params, each) }
	rows := []Launch{{From: "go", Params: bytes, Rounds: rounds, Each: each}}
	ways := []func() (float64, error){fromGo}
	if loop != 0 {
		rows = append(rows, Launch{From: "c", Params: bytes, Rounds: rounds, Each: each})
		ways = append(ways, fromC)
	}
	took := make([][]float64, len(ways))
	for round := range rounds + 2 { // two to warm up
		for i := range ways {
			w := (round + i) % len(ways)
			ns, err := ways[w]()
			if err := errors.Join(err, d.StreamSynchronize(s)); err != nil {
				return nil, err
			}
			if round >= 2 {
				took[w] = append(took[w], ns/float64(each))
			}
		}
	}
	if loop != 0 {
		over := make([]float64, rounds) // within a round, which is short, the machine is the same
		for i := range over {
			over[i] = took[0][i] - took[1][i]
		}
		slices.Sort(over)
		rows[0].Difference = over[rounds/2]
	}
	for i := range rows {
		slices.Sort(took[i])
		rows[i].Nanosecs, rows[i].Min = took[i][rounds/2], took[i][0]
	}
	return rows, nil
}
