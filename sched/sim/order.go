package sim

// A rankQueue is a ring buffer of ranks, each at most once.
type rankQueue struct {
	ranks []int32
	at, n int
}

func (l *rankQueue) push(r int32) {
	i := l.at + l.n
	if i >= len(l.ranks) {
		i -= len(l.ranks)
	}
	l.ranks[i] = r
	l.n++
}

func (l *rankQueue) pop() int32 {
	r := l.ranks[l.at]
	l.at++
	if l.at == len(l.ranks) {
		l.at = 0
	}
	l.n--
	return r
}

// A request is a rank's request for a shared port at a time.
type request struct {
	at   float64
	rank int32
}

// requests is a heap by time, and by rank among equals. It is container/heap
// without the interface, which would allocate for each request.
type requests []request

func (a request) before(b request) bool { return a.at < b.at || a.at == b.at && a.rank < b.rank }

func (h *requests) push(t request) {
	*h = append(*h, t)
	s := *h
	i := len(s) - 1
	for i > 0 && t.before(s[(i-1)/2]) {
		s[i] = s[(i-1)/2]
		i = (i - 1) / 2
	}
	s[i] = t
}

func (h *requests) pop() request {
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
