package request

import (
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/sched"
)

// Layouts says where the chunks of a call's In and Out lie, in bytes. Lists of offsets and lengths lie in scratch,
// until the next call with the same scratch.
func (r *Request) Layouts(c *call.Call, rank int, shape sched.Shape, scratch *[4][]int) (in, out engine.Layout) {
	size, one := r.Size, c.Count*r.Size
	switch c.Kind {
	case call.AllReduce, call.Reduce, call.Broadcast:
		in = engine.Even(one, shape.In, r.Unit) // In and Out have the same chunks
		return in, in
	case call.AllGatherv:
		out = engine.Layout{Off: offsets(&scratch[2], c.OutCounts, c.OutOffsets, size),
			Len: scaled(&scratch[3], c.OutCounts, size)}
		return engine.Layout{Total: out.Len[rank], Chunk: out.Len[rank]}, out
	case call.AlltoAllv:
		return engine.Layout{Off: offsets(&scratch[0], c.InCounts, c.InOffsets, size),
				Len: scaled(&scratch[1], c.InCounts, size)},
			engine.Layout{Off: offsets(&scratch[2], c.OutCounts, c.OutOffsets, size),
				Len: scaled(&scratch[3], c.OutCounts, size)}
	}
	if k := shape.In / blocksIn(c.Kind, shape.Ranks); k > 1 { // of a schedule that divides shares
		return divided(&scratch[0], &scratch[1], one, shape.In, k, r.Unit),
			divided(&scratch[2], &scratch[3], one, shape.Out, k, r.Unit)
	}
	// chunks are the shares of the ranks
	return engine.Layout{Total: shape.In * one, Chunk: one}, engine.Layout{Total: shape.Out * one, Chunk: one}
}

// blocksIn is how many shares In has.
func blocksIn(kind call.Kind, ranks int) int {
	switch kind {
	case call.ReduceScatter, call.AlltoAll, call.Scatter:
		return ranks
	}
	return 1
}

// divided is the layout of chunks, k to a share; one is the length of a share in bytes.
func divided(off, length *[]int, one, chunks, k, unit int) engine.Layout {
	*off, *length = (*off)[:0], (*length)[:0]
	share := engine.Even(one, k, unit)
	for c := range chunks {
		at, n := share.Extent(c % k)
		*off, *length = append(*off, c/k*one+at), append(*length, n)
	}
	return engine.Layout{Off: *off, Len: *length}
}

// scaled is counts of elements in bytes.
func scaled(scratch *[]int, counts []int, size int) []int {
	*scratch = (*scratch)[:0]
	for _, n := range counts {
		*scratch = append(*scratch, n*size)
	}
	return *scratch
}

// offsets are where counts begin, in bytes: as given, in elements, or packed if given is nil.
func offsets(scratch *[]int, counts, given []int, size int) []int {
	if given != nil {
		return scaled(scratch, given, size)
	}
	*scratch = (*scratch)[:0]
	at := 0
	for _, n := range counts {
		*scratch = append(*scratch, at)
		at += n * size
	}
	return *scratch
}
