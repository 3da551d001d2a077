package engine

// A Layout says where the chunks of one buffer lie, in bytes.
type Layout struct {
	Total int // bytes of the buffer
	Chunk int // bytes of every chunk but the last ones, which may be shorter or empty

	// Off and Len are the offsets and lengths of chunks of different sizes (the v-variants); then Total
	// and Chunk are not used.
	Off, Len []int
}

// Even divides total bytes into chunks of whole elements, which have elem bytes each.
// In a buffer that is large enough, chunks are multiples of a cache line too, so that
// no two ranks reduce into one cache line and vector loops start aligned.
func Even(total, chunks, elem int) Layout {
	const line = 64
	if chunks == 1 {
		return Layout{Total: total, Chunk: total}
	}
	unit := elem / min(elem&-elem, line) * line // the least common multiple of elem and line
	if total < 4*unit*chunks {
		unit = elem
	}
	per := (total + chunks - 1) / chunks
	return Layout{Total: total, Chunk: (per + unit - 1) / unit * unit}
}

// Extent is the offset and the length of chunk c, in bytes.
func (l *Layout) Extent(c int) (off, n int) {
	if l.Off != nil {
		return l.Off[c], l.Len[c]
	}
	off = min(c*l.Chunk, l.Total)
	return off, min(l.Chunk, l.Total-off)
}
