package sched

// A Message is what one step sends and another receives.
type Message struct {
	Hop              int // its position in the longest chain of messages that ends with it, from 1
	From, To         Rank
	FromStep, ToStep int
	Sent             Ref // what the sending step names: Src, or Dst if it has no Src
}

// Messages lists the messages of a schedule in the order in which they are received when queues
// hold depth messages, those that ranks send to themselves too (their Hop is that of the messages
// before them, 0 if there are none). The error says why s does not end. It costs one pass over all
// steps, and memory for each message: it is for pictures of small schedules.
func Messages(s Schedule, depth int) ([]Message, error) {
	hops := make([]int, max(0, s.Shape().Ranks)) // of each rank so far
	var list []Message
	err := run(s, depth, func(r Rank, i int, t Step, got Message) (Message, error) {
		if t.Recv != Nobody {
			got.To, got.ToStep = r, i
			list = append(list, got)
			hops[r] = max(hops[r], got.Hop)
		}
		hop := hops[r]
		if t.Send != r {
			hop++
		}
		sent := t.Src
		if sent.Buf == None {
			sent = t.Dst
		}
		return Message{Hop: hop, From: r, FromStep: i, Sent: sent}, nil
	})
	return list, err
}
