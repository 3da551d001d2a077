package grid

import "github.com/ringo-go/ringo/transport"

// A comm is Comm of kernels/cuda/comm.h.
type comm struct {
	control, local    uint64
	stamp             [2]uint64
	signs, token      uint64
	sign, rank, ranks uint32
	fresh, collective uint16
}

// pairwise returns the comm of a kernel for messages between two ranks each.
func (b *base) pairwise(s transport.Stamp) comm {
	return comm{
		control: b.control.device, local: uint64(b.local), stamp: unnumbered(s),
		signs: uint64(b.signs), rank: uint32(b.rank), ranks: uint32(b.ranks),
	}
}

// collective returns the comm of the first kernel of a job that all ranks take part in.
func (b *base) collective(j *Job) comm {
	c := b.pairwise(j.Stamp)
	c.collective = 1
	if !j.Continues {
		c.fresh = 1
	}
	if b.signs != 0 {
		c.sign = max(1, uint32(hashOf(j.Stamp)>>32))
	}
	return c
}

// unnumbered returns a stamp without its number: kernels number collectives when they run.
func unnumbered(s transport.Stamp) transport.Stamp {
	s[0] &= 1<<32 - 1
	return s
}

// hashOf tells calls apart, except for their numbers. Kernels mix in the number and put the
// highest bits into flags, above a counter.
func hashOf(s transport.Stamp, words ...uint64) uint64 {
	s = unnumbered(s)
	h := s[0] ^ s[1]*0x9e3779b97f4a7c15
	for _, w := range words {
		h = (h ^ w) * 0xc2b2ae3d27d4eb4f
		h ^= h >> 32
	}
	return h * 0x9e3779b97f4a7c15
}
