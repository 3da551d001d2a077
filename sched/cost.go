package sched

// A Cost is what a schedule costs, with a chunk as the unit of data. Of a
// collective over S bytes a chunk is S / (In or Out, whichever is more).
type Cost struct {
	Hops int // the longest chain of messages, each sent after the one before had come

	// The most of any rank.
	Steps    int // steps
	Sent     int // chunks sent to other ranks
	Received int // chunks received from other ranks
	Reduced  int // chunks added
}

// CostOf counts what each rank does when queues hold depth messages. A message
// that waits for room does not count as a hop: choose the depth that the ranks
// have for messages as short as those in question. The error is a deadlock or
// anything else that keeps s from its end.
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
