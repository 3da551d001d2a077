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
