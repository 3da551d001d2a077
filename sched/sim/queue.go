package sim

// A queue is the one-way connection of two ranks: how many messages went in and
// came out, and when.
type queue struct {
	src, dst       int32
	sent, received uint32
	times          uint32 // where its ring of arrivals begins in queues.arrivals
	mask           uint32 // length of that ring, a power of two, less 1
	kind           kind
}

// An arrival is when the first and the last slice of a message arrive, and, once
// the message was received, when their slots are free again.
type arrival struct{ first, last float64 }

// queues finds the queues of a run by their ends. Only pairs of ranks that talk
// take memory, with an arrival for each message up to the depth.
type queues struct {
	list     []queue
	arrivals []arrival
	table    []entry // open addressing
}

// An entry is a queue, with a part of its hash: looking into list for queues that have the same
// place would cost as much again.
type entry struct {
	tag uint32
	at  int32 // index into list + 1, or 0
}

func (q *queues) reset(ranks int) {
	size := 64
	for size < 2*ranks {
		size *= 2
	}
	if len(q.table) < size {
		q.table = make([]entry, size)
	} else {
		clear(q.table)
	}
	q.list = q.list[:0]
	q.arrivals = q.arrivals[:0]
}

func hash(src, dst int32) uint64 {
	x := (uint64(uint32(src))<<32 | uint64(uint32(dst))) * 0x9e3779b97f4a7c15
	return x ^ x>>29
}

// find is the index of the queue from src to dst, which is made if there is none.
func (q *queues) find(src, dst int32) int32 {
	mask := uint64(len(q.table) - 1)
	h := hash(src, dst)
	i, tag := h&mask, uint32(h>>32)
	for ; q.table[i].at != 0; i = (i + 1) & mask {
		if q.table[i].tag != tag {
			continue
		}
		at := q.table[i].at - 1
		if q.list[at].src == src && q.list[at].dst == dst {
			return at
		}
	}
	if 2*len(q.list) >= len(q.table) {
		q.grow()
		return q.find(src, dst)
	}
	q.list = append(q.list, queue{src: src, dst: dst, times: uint32(len(q.arrivals))})
	q.arrivals = append(q.arrivals, arrival{})
	q.table[i] = entry{tag, int32(len(q.list))}
	return int32(len(q.list) - 1)
}

func (q *queues) grow() {
	q.table = make([]entry, 2*len(q.table))
	mask := uint64(len(q.table) - 1)
	for at := range q.list {
		h := hash(q.list[at].src, q.list[at].dst)
		i := h & mask
		for q.table[i].at != 0 {
			i = (i + 1) & mask
		}
		q.table[i] = entry{uint32(h >> 32), int32(at + 1)}
	}
}

// arrival is the memory of message number i, one of the last depth.
func (q *queues) arrival(at int32, i uint32) *arrival {
	e := &q.list[at]
	return &q.arrivals[e.times+i&e.mask]
}

// put appends a message.
func (q *queues) put(at int32, s arrival, depth uint32) {
	e := &q.list[at]
	if e.sent == e.mask+1 && e.sent < depth { // the ring is full for the first time
		old := q.arrivals[e.times : e.times+e.sent]
		e.times = uint32(len(q.arrivals))
		q.arrivals = append(q.arrivals, old...)
		q.arrivals = append(q.arrivals, old...) // room for the same number again
		e.mask = 2*e.mask + 1
	}
	q.arrivals[e.times+e.sent&e.mask] = s
	e.sent++
}
