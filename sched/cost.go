package sched

// A Cost is the cost of a schedule, with a chunk as the unit of data. In a collective
// over S bytes a chunk has S / max(In, Out) bytes.
type Cost struct {
	Hops int // the longest chain of messages, each sent after the one before had come

	// The most of any rank.
	Steps    int // steps
	Sent     int // chunks sent to other ranks
	Received int // chunks received from other ranks
	Reduced  int // chunks added
}

// CostOf counts the work of each rank when queues hold depth messages. A wait for room
// does not count as a hop: choose the depth that the queues have for messages of the
// length in question. The error says why s does not end, such as a deadlock. The cost is
// one pass over all steps of all ranks.
func CostOf(s Schedule, depth int) (Cost, error) {
	n := s.Shape().Ranks
	var c Cost
	perRank := make([]Cost, n)
	err := run(s, depth, func(r Rank, _ int, t Step, hops int) (int, error) {
		p := &perRank[r]
		p.Steps++
		if t.Recv != Nobody && t.Recv != r {
			p.Received++
		}
		if t.Recv != Nobody && t.Src.Buf != None {
			p.Reduced++
		}
		p.Hops = max(p.Hops, hops)
		if t.Send == Nobody || t.Send == r {
			return p.Hops, nil
		}
		p.Sent++
		return p.Hops + 1, nil
	})
	for _, p := range perRank {
		c.Hops = max(c.Hops, p.Hops)
		c.Steps = max(c.Steps, p.Steps)
		c.Sent = max(c.Sent, p.Sent)
		c.Received = max(c.Received, p.Received)
		c.Reduced = max(c.Reduced, p.Reduced)
	}
	return c, err
}
