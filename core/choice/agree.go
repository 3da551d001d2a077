package choice

import "github.com/ringo-go/ringo/kernels/collective"

// A Member is what one rank adds to the Budget of all: its GPU and what its program has set.
type Member struct {
	Host, GPU  string // tell hosts and GPUs apart
	Processors int    // multiprocessors of the GPU
	BulkCopies bool   // the GPU has them
	Share      int    // of the GPU's blocks, see Share
	Wants      Budget // Least, Most and Policy
}

// Communicators is how many communicators of a process are sure to run side by side on a GPU.
const Communicators = 8

const leastBlocks = 16 // that are kept for a communicator, fewer on small GPUs

// Capacity returns how many blocks of a communicator's largest kernel run on a GPU at once. A block has 576 threads,
// and a multiprocessor has registers for two blocks. threads are those of a multiprocessor.
func Capacity(processors, threads int) int { return processors * max(1, min(2, threads/576)) }

// Share returns how many blocks of a GPU the next communicator of a process may hold, where open others hold held: all
// that are left, but for the least shares of those that may still come.
func Share(capacity, held, open int) int {
	least := max(1, min(leastBlocks, capacity/(2*Communicators)))
	return max(least, min(collective.MaxBlocks, capacity-held-least*max(0, Communicators-1-open)))
}

// Agree returns the Budget that all ranks have: the least of what they may have at most, the most of what they want at
// least, the thriftiest policy. It alone decides whether a budget is narrow, and whether schedules go by bulk copies.
func Agree(all []Member) Budget {
	sharing := Sharing(all)
	b := Budget{Most: collective.MaxBlocks, Policy: PolicyLatency}
	asked, bulky := 0, true // the least Most that a program has set; all GPUs have bulk copies, on one host
	for i := range all {
		m := &all[i]
		b.Most = min(b.Most, m.most(sharing))
		b.Policy = Thriftier(b.Policy, m.Wants.Policy)
		bulky = bulky && m.BulkCopies && m.Host == all[0].Host
		if most := m.Wants.Most; most > 0 && (asked == 0 || most < asked) {
			asked = most
		}
	}
	b.Most = max(1, b.Most)
	for i := range all {
		b.Least = min(b.Most, max(b.Least, all[i].Wants.Least))
	}
	alone := sharing < 2
	b.Narrow = alone && bulky && len(all) == narrowRanks && b.Policy == PolicyDefault && b.Least <= bulkMost
	b.Bulk = alone && (b.Narrow || b.Policy == PolicyEfficiency || 0 < asked && asked <= bulkMost)
	return b
}

// most is how many blocks a rank's kernel may have, where sharing ranks are on one GPU: their kernels wait for each
// other.
func (m *Member) most(sharing int) int {
	blocks := max(m.Share/sharing, m.Wants.Least)
	if m.Wants.Most > 0 {
		blocks = m.Wants.Most
	}
	if sharing > 1 {
		blocks = min(blocks, m.Processors/sharing)
	}
	return blocks
}

// Sharing returns how many ranks at most have the same GPU.
func Sharing(all []Member) int {
	most, ranks := 0, map[string]int{}
	for i := range all {
		ranks[all[i].GPU]++
		most = max(most, ranks[all[i].GPU])
	}
	return most
}
