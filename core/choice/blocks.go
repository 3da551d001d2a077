package choice

import (
	"fmt"
	"strings"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels/collective"
)

// A Policy says how much of a GPU a communicator's kernels leave to other kernels.
type Policy uint8

const (
	// PolicyDefault is for GPUs that compute beside collectives: it takes the fewest blocks that were
	// measured to lose at most DefaultLoss. A narrow budget has fewer, and loses more on an idle GPU.
	PolicyDefault Policy = iota
	// PolicyEfficiency takes the fewest blocks that keep most of the bandwidth: it loses at
	// most EfficiencyLoss.
	PolicyEfficiency
	// PolicyZero has copy engines carry out what only moves registered memory, where they can
	// (all-gather, all-to-all and broadcast), at whatever size; the rest has PolicyEfficiency's blocks.
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

// ParsePolicy reads a name, or NCCL's number for it: 0 to 2, or 3 for 1 and 2. Several may be joined by "|": the one
// that takes the fewest blocks counts. Nothing is PolicyDefault.
func ParsePolicy(s string) (p Policy, err error) {
	if s = strings.TrimSpace(s); s == "" {
		return PolicyDefault, nil
	}
	p = PolicyLatency
next:
	for _, word := range strings.Split(s, "|") {
		if word = strings.TrimSpace(word); word == "3" {
			word = "2"
		}
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
	// Narrow has schedules with few lanes: two ranks by PolicyDefault, whose GPUs move slices by bulk copies between each
	// other's memory. A product of matrices keeps a multiprocessor from its beginning to its end, and waits for one that a
	// collective holds.
	Narrow bool
	// Bulk has slices of schedules moved by bulk copies where the GPU can: few blocks then reach the bandwidth of many.
	Bulk bool
}

// narrowRanks is the number of ranks whose budget may be narrow: it was measured between two GPUs alone.
const narrowRanks = 2

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

// within is n blocks, or as many as the budget allows; work is how many there is work for.
func (b *Budget) within(n, work int) int { return min(max(n, min(b.Least, work)), b.most()) }

// bulkMost is the largest Most of a program that has bulk copies used, and the largest Least of a narrow budget.
const bulkMost = 32

// In a narrow budget schedules of up to FewLanesMost bytes of a rank's larger buffer have FewLanes lanes: lingering
// kernels carry them out. Larger schedules have largeLanes, and messages as many blocks: alone 256 MiB then take 8 to
// 12 % less time, and beside products of matrices no more. Measured: docs/gpu-inside.md, "Beside matrix products".
const (
	FewLanes     = 32
	FewLanesMost = 64 << 20
	largeLanes   = 64
)

// directMost is the most blocks of a direct kernel in a narrow budget. 20 all-reduces of 1 or 4 MiB beside products of
// matrices ended after 15 ms with 128, after 11.4 or 12.2 with 64; alone they lose 2 to 18 %.
const directMost = 64

// narrowDirect is up to which size direct kernels carry out a collective in a narrow budget, in bytes of a rank's
// larger buffer. Above it lingering kernels carry out schedules: 20 all-gathers of 16 MiB beside products of 1.4 ms
// ended after 9.2 ms in place of 11.4, reduce-scatters after 9.1 in place of 10.5. Alone they take 45 and 35 % longer,
// 0.9 and 1.07 times what NCCL takes.
var narrowDirect = map[call.Kind]int{call.AllGather: 4 << 20, call.ReduceScatter: 8 << 20, call.AlltoAll: 8 << 20}

// takes reports whether narrowDirect leaves a row to a collective of so many bytes of a rank's larger buffer.
func (b *Budget) takes(r *Row, kind call.Kind, bytes int) bool {
	most, ok := narrowDirect[kind]
	return !b.Narrow || !ok || r.Algo != call.Direct || bytes <= most
}

// SideBySide is how many blocks a kernel has that carries out several calls: a batch of small
// all-reduces, or messages between pairs of ranks.
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

// blocks says how many blocks a call on GPU memory takes: what was measured for its row, otherwise as many
// as there is work for, or by a thrifty policy half. By PolicyLatency rows do not count; messages have 0.
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
// each lane, up to this: engine/grid knows how many lanes there are.
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
