package engine

// A Layout says where the chunks of one buffer lie, in bytes.
type Layout struct {
	Total int // bytes of the buffer
	Chunk int // bytes of every chunk but the last ones, which may be shorter or empty

	// Off and Len place chunks of different sizes (the v-variants); then Total
	// and Chunk are not used.
	Off, Len []int
}

// Even divides total bytes of elements of size elem in chunks. The chunks are
// multiples of a cache line where there is enough for all, so that no two ranks
// reduce into one line and vector loops start aligned.
func Even(total, chunks, elem int) Layout {
	const line = 64
	if chunks == 1 {
		return Layout{Total: total, Chunk: total}
	}
	unit := elem
	if total >= 4*line*chunks {
		unit = line // a multiple of every element size
	}
	per := (total + chunks - 1) / chunks
	return Layout{Total: total, Chunk: (per + unit - 1) / unit * unit}
}

// Span is where chunk c lies.
func (l *Layout) Span(c int) (off, n int) {
	if l.Off != nil {
		return l.Off[c], l.Len[c]
	}
	off = min(c*l.Chunk, l.Total)
	return off, min(l.Chunk, l.Total-off)
}
