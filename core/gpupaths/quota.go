package gpupaths

import (
	"sync"

	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
)

// A Quota is how many blocks of a GPU the kernels of one communicator may hold. Kernels wait
// for kernels of other ranks and hold their blocks meanwhile: if one communicator fills the first
// of two GPUs and another one the second, neither ends. With quotas that fit on the GPU together,
// the kernels of all communicators of a process run side by side.
type Quota struct {
	gpu  accountKey
	comm string // the communicator's key
}

// Communicators is how many communicators of a process are sure to run side by side on a GPU.
const Communicators = 8

const (
	mostBlocks  = 128 // of a kernel
	leastBlocks = 16  // that the account keeps for a communicator, fewer on small GPUs
)

// An account is how the blocks of one GPU are divided.
type account struct {
	capacity int // blocks that run at once
	open     map[string]*holding
}

// A holding is what the ranks of one communicator have on the GPU.
type holding struct{ ranks, blocks int }

var accounts struct {
	sync.Mutex
	of map[accountKey]*account
}

type accountKey struct {
	driver cuda.Driver
	dev    cuda.Device
}

// Take takes a quota of a GPU for a rank of a communicator. What the account gives and what the rank wants go into the
// rank's profile.
func Take(p *paths.Profile, d *gpu.Device, comm string, want choice.Budget) (*Quota, error) {
	capacity, err := capacityOf(d)
	if err != nil {
		return nil, err
	}
	key := accountKey{d.Driver(), d.Handle()}
	accounts.Lock()
	defer accounts.Unlock()
	a := accounts.of[key]
	if a == nil {
		if accounts.of == nil {
			accounts.of = map[accountKey]*account{}
		}
		a = &account{capacity: capacity, open: map[string]*holding{}}
		accounts.of[key] = a
	}
	h := a.open[comm]
	if h == nil {
		h = &holding{blocks: a.next()}
		a.open[comm] = h
	}
	h.ranks++
	p.Blocks, p.MaxBlocks, p.MinBlocks, p.Policy = h.blocks, want.Most, want.Least, uint8(want.Policy)
	return &Quota{key, comm}, nil
}

// capacityOf is how many blocks of a communicator's largest kernel run on a GPU at once. A block has 576 threads, and a
// multiprocessor has registers for two blocks.
func capacityOf(d *gpu.Device) (int, error) {
	processors, err := d.Driver().DeviceGetAttribute(cuda.AttrMultiprocessorCount, d.Handle())
	if err != nil {
		return 0, err
	}
	threads, err := d.Driver().DeviceGetAttribute(cuda.AttrMaxThreadsPerMultiprocessor, d.Handle())
	return processors * max(1, min(2, threads/576)), err
}

// next is the quota of one more communicator: all blocks that are left, but for the least quotas of
// the communicators that may still come.
func (a *account) next() int {
	left := a.capacity
	for _, h := range a.open {
		left -= h.blocks
	}
	least := max(1, min(leastBlocks, a.capacity/(2*Communicators)))
	return max(least, min(mostBlocks, left-least*max(0, Communicators-1-len(a.open))))
}

// settle says how many blocks each rank of the communicator has, as all ranks agreed.
func (s *Quota) settle(blocks int) {
	accounts.Lock()
	defer accounts.Unlock()
	h := accounts.of[s.gpu].open[s.comm]
	h.blocks = blocks * h.ranks
}

// GiveBack ends the rank's part in the quota. Call it once, when no kernel of the rank holds blocks any more. A nil
// Quota has nothing.
func (s *Quota) GiveBack() {
	if s == nil {
		return
	}
	accounts.Lock()
	defer accounts.Unlock()
	a := accounts.of[s.gpu]
	if h := a.open[s.comm]; h.ranks > 1 {
		h.ranks--
		return
	}
	if delete(a.open, s.comm); len(a.open) == 0 {
		delete(accounts.of, s.gpu)
	}
}

// agreedBudget is the budget of each rank: the most blocks are the least that any rank may
// have, the least are the most that any wants, and the thriftiest policy counts. Up to sharing
// ranks are on one GPU.
func agreedBudget(all []paths.Profile, sharing int) choice.Budget {
	b := choice.Budget{Most: agreedBlocks(all, sharing), Policy: choice.PolicyLatency}
	for i := range all {
		b.Least = min(b.Most, max(b.Least, all[i].MinBlocks))
		b.Policy = choice.Thriftier(b.Policy, choice.Policy(all[i].Policy))
	}
	if len(all) == choice.NarrowRanks && sharing < 2 && bulky(all) {
		b = b.Narrowed()
	}
	return b
}

// bulky reports whether slices go by bulk copies between all ranks: on one host, on GPUs that have them.
func bulky(all []paths.Profile) bool {
	for i := range all {
		if all[i].Host != all[0].Host || !all[i].BulkCopies {
			return false
		}
	}
	return true
}

// agreedBlocks is the quota of each rank, the least that any of them may have.
func agreedBlocks(all []paths.Profile, sharing int) int {
	least := mostBlocks
	for i := range all {
		p := &all[i]
		blocks := max(p.Blocks/sharing, p.MinBlocks)
		if p.MaxBlocks > 0 {
			blocks = p.MaxBlocks
		}
		if sharing > 1 { // kernels of ranks on one GPU wait for each other
			blocks = min(blocks, p.Processors/sharing)
		}
		least = min(least, blocks)
	}
	return max(1, least)
}
