package direct

// ahead is how many messages a rank sends before it waits for the partner's: as
// many as a queue holds for certain.
const ahead = 2

// exchange says what two ranks do at step i of 2m when each sends the other m
// messages: send or receive message j. A rank sends two, then receives one and
// sends one in turn, then receives the rest, which takes ⌈m/2⌉ hops. To send all
// first would need a queue of m messages; to receive after each would take m hops.
func exchange(i, m int) (j int, send bool) {
	lead := min(ahead, m)
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
