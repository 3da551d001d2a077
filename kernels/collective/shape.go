package collective

// How long messages are, and the grids of the kernels that move them.

// MaxBlocks is the most blocks of a kernel for direct access.
const MaxBlocks = 128

const (
	LineData    = 120 // bytes of data in a line of a mailbox
	LineThreads = 8   // threads that store or load a line
	MaxThreads  = 512 // threads of a block that move data
)

// Lines is how many lines a message takes.
func Lines(bytes int) int { return max(1, (bytes+LineData-1)/LineData) }

// Message is the longest message from one rank to another in a direct kernel, for a
// collective of this many bytes: TwoShot sends shares.
func (d Direct) Message(ranks, bytes int) int {
	if d == TwoShot {
		return roundUp((bytes+ranks-1)/ranks, 16)
	}
	return bytes
}

// DirectShape is the grid of a direct kernel, for messages of a number of lines: a group of
// threads for each line while there are few, several lines for each group when there are
// more. Measured on 2 and 4 H200s. Fewer blocks serve too.
func DirectShape(d Direct, ranks, lines int) (blocks, threads int) {
	threads = 128
	switch {
	case lines*LineThreads <= threads:
		return 1, roundUp(lines*LineThreads, 32)
	case lines > 4096 && ranks == 2:
		threads = 512
	case lines > 12000, lines > 2048 && lines <= 4096:
		threads = 256
	case lines > 4096 && d == TwoShot:
		return 96, threads
	}
	return min(MaxBlocks, (lines*LineThreads+threads-1)/threads), threads
}

// NormPart is how many lines of a row a block of a norm kernel takes if there are enough blocks.
const NormPart = 16

// NormBlocks is how many blocks a norm kernel can keep busy.
func NormBlocks(d Direct, ranks, rows, lines int) int {
	blocks := rows * ((lines + NormPart - 1) / NormPart)
	if d == TwoShot {
		blocks = (rows + ranks - 1) / ranks
	}
	return max(1, min(MaxBlocks, blocks))
}

// WindowShape is the grid of a window kernel, of MaxThreads a block, and the bytes that a
// block moves at once: as many blocks as there is work for, and then the largest tiles. On
// 4 H200s fewer blocks are slower from 16 MiB on, except in a reduce-scatter, and larger
// tiles are no faster.
func WindowShape(d Direct, ranks, bytes int) (blocks, tile int) {
	total, most := bytes, MaxBlocks // bytes that a rank moves
	switch d {
	case ReduceScatter:
		most = MaxBlocks / 2
	case TwoShot, Reduce, Broadcast:
		total /= ranks
	case AllGather, AllToAll, Gather, Scatter:
		total *= ranks
	}
	const vectors = 16 * MaxThreads // bytes
	blocks = max(1, min(most, (total+vectors-1)/vectors))
	return blocks, vectors * max(1, min(4, total/(blocks*vectors)))
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }
