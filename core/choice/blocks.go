package choice

import (
	"fmt"
	"strings"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels/collective"
)

// A Policy says what a communicator's kernels leave of a GPU to others.
type Policy uint8

const (
	// PolicyDefault is for GPUs that compute beside collectives: schedules have few lanes, which lose
	// some bandwidth on an idle GPU, and everything else the fewest blocks that were measured to lose at
	// most DefaultLoss.
	PolicyDefault Policy = iota
	// PolicyEfficiency takes the fewest blocks that keep most of the bandwidth: it loses at
	// most EfficiencyLoss.
	PolicyEfficiency
	// PolicyZero has copy engines carry out what only moves registered memory, where they can
	// (all-gather, all-to-all and broadcast), at whatever size; the rest is as with PolicyEfficiency.
	PolicyZero
	// PolicyLatency takes as many blocks as there is work for: the quickest where nothing else runs on
	// the GPU. It gives way to any other policy of another rank.
	PolicyLatency
	policies
)

// How much longer an operation may take with fewer blocks, by policy.
const (
	DefaultLoss    = 0.03
	EfficiencyLoss = 0.10
)

var policyNames = [policies]string{"default", "efficiency", "zero", "latency"}

// String is the name in lower case.
func (p Policy) String() string {
	if p < policies {
		return policyNames[p]
	}
	return fmt.Sprintf("policy(%d)", uint8(p))
}

// ParsePolicy reads a name, or NCCL's number for it: 0 to 3. Several may be joined by "|",
// or added up: the one that takes the fewest blocks counts. Nothing is PolicyDefault.
func ParsePolicy(s string) (p Policy, err error) {
	switch s = strings.TrimSpace(s); s {
	case "":
		return PolicyDefault, nil
	case "3":
		return PolicyZero, nil
	}
	p = PolicyLatency
next:
	for _, word := range strings.Split(s, "|") {
		word = strings.TrimSpace(word)
		for i, name := range policyNames {
			if strings.EqualFold(word, name) || word == fmt.Sprint(i) && Policy(i) != PolicyLatency {
				p = Thriftier(p, Policy(i))
				continue next
			}
		}
		return 0, fmt.Errorf("%w: policy %q is none of %s, or 0 to 3", call.ErrInvalid, word,
			strings.Join(policyNames[:], ", "))
	}
	return p, nil
}

// Thriftier is the policy of two that takes the fewest blocks.
func Thriftier(a, b Policy) Policy {
	switch {
	case a == PolicyLatency:
		return b
	case b == PolicyLatency:
		return a
	}
	return max(a, b)
}

// thrifty reports whether a policy gives bandwidth away for blocks.
func (p Policy) thrifty() bool { return p == PolicyEfficiency || p == PolicyZero }

// A Budget is how many blocks of a GPU each kernel of a communicator may have: what all its
// ranks agreed on. The zero Budget is MaxBlocks and PolicyDefault.
type Budget struct {
	Least  int // where there is work for them
	Most   int // 0: collective.MaxBlocks
	Policy Policy
	Narrow bool // schedules have few lanes: see Narrowed
}

// NarrowRanks is how many ranks there are where Narrowed is for: what it gains and loses was measured
// between two GPUs.
const NarrowRanks = 2

// Narrowed is the budget of ranks whose GPUs all move slices by bulk copies between each other's
// memory: with PolicyDefault few lanes do, unless a program wants more. A product of matrices keeps a
// multiprocessor from its beginning to its end, and waits for one that a collective holds.
func (b Budget) Narrowed() Budget {
	b.Narrow = b.Policy == PolicyDefault && b.Least <= bulkMost
	return b
}

// Lanes is how many lanes a schedule has at most, each with a block.
func (b *Budget) Lanes() int {
	if b.Narrow {
		return min(b.most(), largeLanes)
	}
	return b.most()
}

func (b *Budget) most() int {
	if b.Most == 0 {
		return collective.MaxBlocks
	}
	return min(b.Most, collective.MaxBlocks)
}

// within is a number of blocks of those that there is work for, within the budget.
func (b *Budget) within(n, work int) int { return min(max(n, min(b.Least, work)), b.most()) }

// bulkMost is the most blocks for which bulk copies are used by default.
const bulkMost = 32

// In a narrow budget schedules have FewLanes up to FewLanesMost bytes of a rank's larger buffer: lingering kernels carry
// them out. Larger ones have largeLanes, and messages as many blocks. Alone 256 MiB take 8 to 12 % less time with those,
// and beside products of matrices no more. Measured: docs/gpu-inside.md, "Beside matrix products".
const (
	FewLanes     = 32
	FewLanesMost = 64 << 20
	largeLanes   = 64
)

// directMost is the most blocks of a direct kernel in a narrow budget. With 128, all-reduces of 1 to 4 MiB made
// products of matrices beside them 1.65 times as long, with 64 1.23 times; alone they lose 2 to 18 %.
const directMost = 64

// narrowDirect is up to which size direct kernels carry out a collective in a narrow budget, in bytes of a rank's
// larger buffer. Above it lingering kernels carry out schedules. Of 20 all-gathers of 16 MiB beside products of 1.4 ms
// all had ended after 9.2 ms in place of 11.4, of reduce-scatters after 9.1 in place of 10.5. Alone they take 35 to
// 45 % longer, 0.9 and 1.07 of what NCCL takes.
var narrowDirect = map[call.Kind]int{call.AllGather: 4 << 20, call.ReduceScatter: 8 << 20, call.AlltoAll: 8 << 20}

// takes reports whether a row counts in the budget, for a collective of so many bytes of a rank's larger buffer.
func (b *Budget) takes(r *Row, kind call.Kind, bytes int) bool {
	most, ok := narrowDirect[kind]
	return !b.Narrow || !ok || r.Algo != call.Direct || bytes <= most
}

// Bulk reports whether what goes through slots goes by bulk copies where the device can, for
// the budget that a program asks for: few blocks of them reach the bandwidth of many blocks of
// threads.
func (b *Budget) Bulk() bool {
	return b.Policy == PolicyEfficiency || b.Narrow || 0 < b.Most && b.Most <= bulkMost
}

// SideBySide is how many blocks carry out what shares kernels and is not chosen call by call:
// batches of small all-reduces, and messages between pairs of ranks.
func (b *Budget) SideBySide() int {
	n := b.most()
	if b.Policy.thrifty() {
		n = half(n)
	}
	return b.within(n, b.most())
}

// ForMessages is SideBySide for messages, which have a block for each lane at most.
func (b *Budget) ForMessages() int { return min(b.SideBySide(), b.Lanes()) }

// Why a call takes its blocks.
const (
	byWork    = "as many as there is work for"
	byBeside  = "few, for GPUs that compute beside it; policy latency has more"
	byMeasure = "measured, by the plan's row"
	byThrift  = "measured: the fewest that lose at most 10 %"
	byHalf    = "half of those that there is work for: nothing was measured"
	byGates   = "two kernels of one block, and copy engines between them"
	andLeast  = "MinBlocks: at least as many"
	andMost   = "MaxBlocks, or a share of the GPU: no more"
)

// half is for policies that are thrifty where nothing was measured: a ring keeps 95 % of its
// bandwidth with half of its lanes (1 GiB on 4 H200s).
func half(n int) int { return (n + 1) / 2 }

// blocks says how many blocks a call on GPU memory takes. What was measured for a row counts;
// otherwise there are as many as there is work for, or for a policy that is thrifty, half.
func (c *Chooser) blocks(q *Question, ans *Answer) (n int, why string) {
	if q.Kind.Pairwise() {
		return 0, ""
	}
	work, why := c.work(q, ans)
	n = work
	switch r, thrifty := ans.row, c.Budget.Policy.thrifty(); {
	case ans.By == ByCopies && q.Kind != call.AllReduce:
		return 1, byGates
	case thrifty && r != nil && r.Few > 0:
		n, why = min(n, r.Few), byThrift
	case thrifty && r != nil && r.Blocks > 0 && r.Blocks < half(n):
		n, why = r.Blocks, byMeasure
	case thrifty:
		n, why = half(n), byHalf
	case c.Budget.Policy == PolicyLatency:
	case r != nil && 0 < r.Blocks && r.Blocks < n:
		n, why = r.Blocks, byMeasure
	}
	switch in := c.Budget.within(n, work); {
	case in > n:
		return in, andLeast
	case in < n:
		return in, andMost
	}
	return n, why
}

// work is how many blocks there is work for, or fewer in a narrow budget. Schedules have a block for
// each lane of their queues: engine/grid knows how many there are.
func (c *Chooser) work(q *Question, ans *Answer) (blocks int, why string) {
	n, bytes, most := c.Topo.Ranks, q.Bytes, collective.MaxBlocks
	blocks = most
	switch ans.By {
	case ByKernel:
		blocks, _ = collective.DirectShape(ans.Kernel, n, collective.Lines(ans.Kernel.Message(n, bytes)))
		if c.Budget.Narrow {
			most = directMost
		}
	case ByNorm:
		blocks = collective.NormBlocks(ans.Kernel, n, bytes/q.Row, collective.Lines(q.Row))
	case ByWindow:
		blocks, _ = collective.WindowShape(ans.Kernel, n, bytes)
	case BySchedule:
		switch {
		case c.Budget.Narrow && bytes*q.Kind.Shares(n) <= FewLanesMost:
			most = FewLanes
		case c.Budget.Narrow:
			most = largeLanes
		}
	}
	if blocks > most {
		return most, byBeside
	}
	return blocks, byWork
}
