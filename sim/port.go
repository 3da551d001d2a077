package sim

// A port serves one message at a time. Requests come nearly in the order of
// time: a late one that fits into the latest pause is served there.
type port struct {
	free                 float64 // when the last service so far ends
	pauseBegin, pauseEnd float64
}

// serve books the port for dur seconds, not before ready, and returns when the
// service starts.
func (p *port) serve(ready, dur float64) float64 {
	if start := max(ready, p.pauseBegin); start+dur <= p.pauseEnd {
		p.pauseBegin = start + dur
		return start
	}
	if ready > p.free {
		p.pauseBegin, p.pauseEnd = p.free, ready
		p.free = ready
	}
	start := p.free
	p.free = start + dur
	return start
}

// A turn is a rank that wants a shared port at a time.
type turn struct {
	at   float64
	rank int32
}

// turns is a heap by time, and by rank among equals. It is container/heap
// without the interface, which would allocate for each turn.
type turns []turn

func (a turn) before(b turn) bool { return a.at < b.at || a.at == b.at && a.rank < b.rank }

func (h *turns) push(t turn) {
	*h = append(*h, t)
	s := *h
	i := len(s) - 1
	for i > 0 && t.before(s[(i-1)/2]) {
		s[i] = s[(i-1)/2]
		i = (i - 1) / 2
	}
	s[i] = t
}

func (h *turns) pop() turn {
	s := *h
	top, last := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	for i := 0; len(s) > 0; {
		child := 2*i + 1
		if child+1 < len(s) && s[child+1].before(s[child]) {
			child++
		}
		if child >= len(s) || !s[child].before(last) {
			s[i] = last
			break
		}
		s[i] = s[child]
		i = child
	}
	return top
}
