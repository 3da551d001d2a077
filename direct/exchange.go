package direct

// DefaultLead is the Lead of a schedule that does not say: what queues of two
// messages allow.
const DefaultLead = 2

// exchange says what two ranks do at step i of 2m when each sends the other m
// messages: send or receive message j. A rank stays lead messages ahead: it
// sends lead, then receives one and sends one in turn, then receives the rest.
// "Send all, then receive" would need a queue of m messages, and "send one,
// receive one" would wait for a whole journey for each.
func exchange(i, m, lead int) (j int, send bool) {
	lead = min(max(lead, 1), m)
	turns := 2 * (m - lead)
	switch i -= lead; {
	case i < 0:
		return i + lead, true
	case i < turns:
		return i/2 + i%2*lead, i%2 == 1
	default:
		return m - lead + i - turns, false
	}
}

func leadOr(lead int) int {
	if lead == 0 {
		return DefaultLead
	}
	return lead
}
