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
	// PolicyDefault loses at most DefaultLoss of the bandwidth, with the fewest blocks that
	// were measured to do so.
	PolicyDefault Policy = iota
	// PolicyEfficiency takes the fewest blocks that keep most of the bandwidth: it loses at
	// most EfficiencyLoss.
	PolicyEfficiency
	// PolicyZero has copy engines carry out what only moves registered memory, where they can
	// (all-gather, all-to-all and broadcast), at whatever size; the rest is as with PolicyEfficiency.
	PolicyZero
	policies
)

// How much longer an operation may take with fewer blocks, by policy.
const (
	DefaultLoss    = 0.03
	EfficiencyLoss = 0.10
)

var policyNames = [policies]string{"default", "efficiency", "zero"}

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
next:
	for _, word := range strings.Split(s, "|") {
		word = strings.TrimSpace(word)
		for i, name := range policyNames {
			if strings.EqualFold(word, name) || word == fmt.Sprint(i) {
				p = max(p, Policy(i))
				continue next
			}
		}
		return 0, fmt.Errorf("%w: policy %q is none of %s, or 0 to 3", call.ErrInvalid, word, strings.Join(policyNames[:], ", "))
	}
	return p, nil
}

// A Budget is how many blocks of a GPU each kernel of a communicator may have: what all its
// ranks agreed on. The zero Budget is MaxBlocks and PolicyDefault.
type Budget struct {
	Least  int // where there is work for them
	Most   int // 0: collective.MaxBlocks
	Policy Policy
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

// Bulk reports whether what goes through slots goes by bulk copies where the device can, for
// the budget that a program asks for: few blocks of them reach the bandwidth of many blocks of
// threads.
func (b *Budget) Bulk() bool {
	return b.Policy == PolicyEfficiency || 0 < b.Most && b.Most <= bulkMost
}

// SideBySide is how many blocks carry out what shares kernels and is not chosen call by call:
// messages between pairs of ranks, and batches of small all-reduces.
func (b *Budget) SideBySide() int {
	n := b.most()
	if b.Policy != PolicyDefault {
		n = half(n)
	}
	return b.within(n, b.most())
}

// Why a call takes its blocks.
const (
	byWork    = "as many as there is work for"
	byMeasure = "measured: the fewest that lose at most 3 %"
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
	work := c.work(q, ans)
	n, why = work, byWork
	switch r, thrifty := ans.row, c.Budget.Policy != PolicyDefault; {
	case ans.By == ByCopies && q.Kind != call.AllReduce:
		return 1, byGates
	case thrifty && r != nil && r.Few > 0:
		n, why = min(n, r.Few), byThrift
	case thrifty && r != nil && r.Blocks > 0 && r.Blocks < half(n):
		n, why = r.Blocks, byMeasure
	case thrifty:
		n, why = half(n), byHalf
	case r != nil && r.Blocks > 0:
		n, why = min(n, r.Blocks), byMeasure
	}
	switch in := c.Budget.within(n, work); {
	case in > n:
		return in, andLeast
	case in < n:
		return in, andMost
	}
	return n, why
}

// work is how many blocks there is work for. Schedules have a block for each lane of their
// queues: engine/grid knows how many there are.
func (c *Chooser) work(q *Question, ans *Answer) int {
	n, bytes := c.Topo.Ranks, q.Bytes
	switch ans.By {
	case ByKernel:
		blocks, _ := collective.DirectShape(ans.Kernel, n, collective.Lines(ans.Kernel.Message(n, bytes)))
		return blocks
	case ByNorm:
		return collective.NormBlocks(ans.Kernel, n, bytes/q.Row, collective.Lines(q.Row))
	case ByWindow:
		blocks, _ := collective.WindowShape(ans.Kernel, n, bytes)
		return blocks
	}
	return collective.MaxBlocks
}
