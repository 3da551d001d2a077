// Package ringo is a library of collective communication: all-reduce and its
// family between goroutines, processes and hosts, on host memory.
//
// A communicator (Comm) is a fixed set of ranks, numbered from 0. All ranks make
// the same calls in the same order; each call gives every rank its result:
//
//	c, err := ringo.OpenEnv(ctx, ringo.Config{}) // started by: ringo run -np 4 -- PROGRAM
//	if err != nil { … }
//	defer c.Close()
//	grad := make([]float32, 1<<20)
//	err = ringo.AllReduce(c, grad, ringo.Avg)
//
// Results are the same bits on all ranks, and the same from run to run for the
// same number of ranks, size and algorithm. Counts are in elements. Errors are
// *Error values that name rank, peer, transport and remedy; every wait has a
// deadline (Config.Timeout) and Abort ends all of them.
//
// How it works is in ARCHITECTURE.md; the algorithms are in packages ring, tree
// and direct, as tables that can be read, printed, proved and simulated.
package ringo

import (
	"context"
	"fmt"
	"os"

	"github.com/ringo-go/ringo/bootstrap"
)

// Version is the version of this library. All ranks must run the same one.
const Version = "0.1.0"

// NewID makes a meeting point for a new communicator and serves it from this
// process, which should be rank 0's. Give the ID to all ranks (it prints and
// parses as text) and have each Open with it. addr is the "host:port" where
// ranks come; "" is a free port on the interface of the default route, and
// "127.0.0.1:0" keeps to this host.
func NewID(addr string) (bootstrap.ID, error) {
	cfg, err := Config{}.fill(os.Getenv)
	if err != nil {
		return bootstrap.ID{}, openError(cfg, err)
	}
	return bootstrap.NewID(bootstrap.ListenOptions{Addr: addr, Log: cfg.Log.With("subsys", "BOOTSTRAP")})
}

// OpenEnv is Open with ID, Rank and Size from the environment that a launcher
// has made: ringo run, torchrun, mpirun, srun or a Kubernetes indexed job; see
// bootstrap.FromEnv for the variables.
func OpenEnv(ctx context.Context, cfg Config) (*Comm, error) {
	spec, ok, err := bootstrap.FromEnv(os.Getenv)
	if err != nil {
		return nil, openError(cfg, err)
	}
	if !ok {
		return nil, openError(cfg, fmt.Errorf("%w: no launcher has set RINGO_RANK, RANK, OMPI_COMM_WORLD_RANK, SLURM_PROCID, PMI_RANK or JOB_COMPLETION_INDEX; start with: ringo run -np 4 -- PROGRAM", ErrInvalid))
	}
	cfg.Rank, cfg.Size = spec.Rank, spec.Size
	if cfg, err = cfg.fill(os.Getenv); err != nil {
		return nil, openError(cfg, err)
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.JoinTimeout)
	defer cancel()
	log := cfg.Log.With("subsys", "BOOTSTRAP")
	group, err := spec.Join(ctx, bootstrap.ListenOptions{Log: log}, bootstrap.JoinOptions{Log: log})
	if err != nil {
		return nil, openError(cfg, err)
	}
	return open(ctx, cfg, group)
}
