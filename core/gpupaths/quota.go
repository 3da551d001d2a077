package gpupaths

import (
	"sync"

	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/process"
)

// A Quota is how many blocks of a GPU the kernels of one communicator may hold. Kernels wait
// for kernels of other ranks and hold their blocks meanwhile: if one communicator fills the first
// of two GPUs and another one the second, neither ends. With quotas that fit on the GPU together,
// the kernels of all communicators of a process run side by side.
type Quota struct {
	all  *accounts
	gpu  accountKey
	comm string // the communicator's key
}

// An account is how the blocks of one GPU are divided.
type account struct {
	capacity int // blocks that run at once
	open     map[string]*holding
}

// A holding is what the ranks of one communicator have on the GPU.
type holding struct{ ranks, blocks int }

// accounts are those of a process.
type accounts struct {
	sync.Mutex
	of map[accountKey]*account
}

var ofProcess = process.NewRegistry(func() *accounts { return &accounts{of: map[accountKey]*account{}} })

type accountKey struct {
	driver cuda.Driver
	dev    cuda.Device
}

// Take takes a quota of a GPU for a rank of a communicator. What the account gives and what the rank wants go into the
// rank's profile.
func Take(in *process.Process, p *paths.Profile, d *gpu.Device, comm string, want choice.Budget) (*Quota, error) {
	capacity, err := capacityOf(d)
	if err != nil {
		return nil, err
	}
	key := accountKey{d.Driver(), d.Handle()}
	all := ofProcess.In(in)
	all.Lock()
	defer all.Unlock()
	a := all.of[key]
	if a == nil {
		a = &account{capacity: capacity, open: map[string]*holding{}}
		all.of[key] = a
	}
	h := a.open[comm]
	if h == nil {
		h = &holding{blocks: a.next()}
		a.open[comm] = h
	}
	h.ranks++
	p.Blocks, p.MaxBlocks, p.MinBlocks, p.Policy = h.blocks, want.Most, want.Least, uint8(want.Policy)
	return &Quota{all, key, comm}, nil
}

// capacityOf is the choice.Capacity of a GPU.
func capacityOf(d *gpu.Device) (int, error) {
	processors, err := d.Driver().DeviceGetAttribute(cuda.AttrMultiprocessorCount, d.Handle())
	if err != nil {
		return 0, err
	}
	threads, err := d.Driver().DeviceGetAttribute(cuda.AttrMaxThreadsPerMultiprocessor, d.Handle())
	return choice.Capacity(processors, threads), err
}

// next is the quota of one more communicator.
func (a *account) next() int {
	held := 0
	for _, h := range a.open {
		held += h.blocks
	}
	return choice.Share(a.capacity, held, len(a.open))
}

// settle says how many blocks each rank of the communicator has, as all ranks agreed.
func (s *Quota) settle(blocks int) {
	s.all.Lock()
	defer s.all.Unlock()
	h := s.all.of[s.gpu].open[s.comm]
	h.blocks = blocks * h.ranks
}

// GiveBack ends the rank's part in the quota. Call it once, when no kernel of the rank holds blocks any more. A nil
// Quota has nothing.
func (s *Quota) GiveBack() {
	if s == nil {
		return
	}
	s.all.Lock()
	defer s.all.Unlock()
	a := s.all.of[s.gpu]
	if h := a.open[s.comm]; h.ranks > 1 {
		h.ranks--
		return
	}
	if delete(a.open, s.comm); len(a.open) == 0 {
		delete(s.all.of, s.gpu)
	}
}

// members are what the profiles of all ranks say to choice.Agree.
func members(all []paths.Profile) []choice.Member {
	of := make([]choice.Member, len(all))
	for i := range all {
		p := &all[i]
		of[i] = choice.Member{Host: p.Host, GPU: p.GPUID, Processors: p.Processors, BulkCopies: p.BulkCopies, Share: p.Blocks,
			Wants: choice.Budget{Least: p.MinBlocks, Most: p.MaxBlocks, Policy: choice.Policy(p.Policy)}}
	}
	return of
}
